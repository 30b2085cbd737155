"""The status page in a browser: figures without scripts, live with them, and the kudos of a key."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open
from tests.support.horde import KEYS, MODEL, HordeProcesses

LINE = "The store is slow today."


@pytest.fixture
def incident(horde: HordeProcesses) -> Iterator[None]:
    """A line of the operator's."""
    horde.query("INSERT INTO incidents (message) VALUES (:line)", line=LINE)
    yield
    horde.query("UPDATE incidents SET ended_at = now() WHERE ended_at IS NULL")


@pytest.mark.parametrize("face", ["front", "native"])
def test_the_numbers_are_there_without_scripts(horde: HordeProcesses, open_tab: Open, face: str) -> None:
    page = open_tab(f"{getattr(horde, face)}/status", scripts=False).page
    assert int(page.locator("dt:text-is('Workers online') + dd").inner_text().split()[0]) >= 1
    expect(page.get_by_role("rowheader", name=MODEL, exact=True)).to_be_visible()
    assert page.locator("figure svg[role=img]").count() == 4
    expect(page.locator("noscript p")).to_be_visible()
    assert "Reload for newer ones." in page.locator("noscript p").inner_text()


@pytest.mark.parametrize("face", ["front", "native"])
def test_a_change_is_seen_without_a_reload(horde: HordeProcesses, open_tab: Open, face: str) -> None:
    page = open_tab(f"{getattr(horde, face)}/status").page
    page.evaluate("window.isTheSamePage = true")
    before = page.locator("#as-of").inner_text()
    horde.query("INSERT INTO incidents (message) VALUES (:line)", line=LINE)
    try:
        expect(page.get_by_role("status").filter(has_text=LINE)).to_be_visible()
    finally:
        horde.query("UPDATE incidents SET ended_at = now() WHERE ended_at IS NULL")
    expect(page.get_by_text(LINE)).to_have_count(0)
    assert page.locator("#as-of").inner_text() != before
    assert page.evaluate("window.isTheSamePage")


@pytest.mark.usefixtures("incident")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_incident_can_be_read(horde: HordeProcesses, open_tab: Open, scheme: str) -> None:
    tab = open_tab(f"{horde.front}/status", scheme=scheme)
    tab.page.get_by_text(LINE).wait_for()
    tab.require_accessible()


def test_kudos_are_shown_by_keyboard_alone_and_the_key_is_in_no_address(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/status")
    asked: list[str] = []
    tab.page.on("request", lambda request: asked.append(request.url))
    tab.tab_to("key", 60)
    tab.page.keyboard.type(KEYS.demo)
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#account")).to_contain_text("demo#")
    expect(tab.page.locator("#account")).to_contain_text("kudos")
    assert any(url.endswith("/find_user") for url in asked)
    assert not [url for url in [*asked, tab.page.url] if KEYS.demo in url]


def test_a_key_that_nobody_has_is_told_in_words(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/status")
    tab.expected.append(404)
    tab.page.get_by_label("API key").fill("no-such-key-in-the-horde")
    tab.page.get_by_role("button", name="Show").click()
    expect(tab.page.locator("#account .problem")).not_to_be_empty()


def test_kudos_are_shown_without_scripts_and_the_key_is_in_no_address(horde: HordeProcesses, open_tab: Open) -> None:
    page = open_tab(f"{horde.front}/status", scripts=False).page
    page.get_by_label("API key").fill(KEYS.demo)
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#account")).to_contain_text("demo#")
    assert KEYS.demo not in page.url
    assert KEYS.demo not in page.content()


def test_the_hour_is_a_table_too(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/status")
    tab.page.get_by_text("The hour as a table").click()
    assert tab.page.locator("#hour-rows tr").count() == 12
    tab.require_accessible()


def test_figures_come_back_after_the_horde_was_away(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/status")
    tab.expected += [502, 503]
    horde.kill("web")
    horde.start("web")
    horde.wait_ready()
    before = tab.page.locator("#as-of").inner_text()
    expect(tab.page.locator("#as-of")).not_to_have_text(before)
