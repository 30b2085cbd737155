"""A person gets a key by keyboard alone, and keeps it."""

import re

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SIZES, Open, Tab
from tests.support.horde import HordeProcesses

KEY = re.compile(r"[A-Za-z0-9_-]{22}")


def registered(tab: Tab, name: str = "Browser Ann") -> str:
    """Write a name where the focus is, and press Enter; the key that the page shows."""
    assert tab.focused() == "username"
    tab.page.keyboard.type(name)
    tab.page.keyboard.press("Enter")
    return tab.page.get_by_label("API key").input_value()


def test_a_key_is_got_and_copied_by_keyboard_alone(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/register")
    key = registered(tab)
    assert KEY.fullmatch(key)
    tab.tab_to("copy")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_text("Copied.")).to_be_visible()
    assert tab.page.evaluate("navigator.clipboard.readText()") == key
    assert horde.call("GET", "/api/v2/find_user", key).status == 200


def test_where_a_browser_forbids_copying_the_key_is_selected(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/register")
    key = registered(tab)
    tab.page.evaluate("navigator.clipboard.writeText = () => Promise.reject(new Error('forbidden')); 0")
    tab.page.get_by_role("button", name="Copy").click()
    expect(tab.page.get_by_text("press Ctrl+C")).to_be_visible()
    selected = "(field) => field.value.slice(field.selectionStart, field.selectionEnd)"
    assert tab.page.get_by_label("API key").evaluate(selected) == key


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_the_page_with_the_key_is_accessible_and_fits(
    horde: HordeProcesses, open_tab: Open, scheme: str, size: str
) -> None:
    tab = open_tab(f"{horde.front}/register", size, scheme)
    registered(tab, "N" * 30)
    tab.require_accessible()
    tab.require_no_sideways_scrolling()


def test_a_name_that_cannot_be_used_is_refused_where_it_was_written(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/register")
    tab.expected.append(400)
    tab.page.keyboard.type("a#1")
    tab.page.keyboard.press("Enter")
    expect(tab.page.get_by_role("alert")).to_contain_text("without #")
    expect(tab.page.get_by_label("Name")).to_have_value("a#1")
    tab.require_accessible()


def test_it_tells_that_volunteers_read_prompts_and_works_without_scripts(horde: HordeProcesses, open_tab: Open) -> None:
    page = open_tab(f"{horde.front}/register", scripts=False).page
    expect(page.get_by_role("heading", name="Volunteers read prompts")).to_be_visible()
    page.get_by_label("Name").fill("No Scripts")
    page.get_by_role("button", name="Get a key").click()
    assert KEY.fullmatch(page.get_by_label("API key").input_value())
    expect(page.get_by_role("button", name="Copy")).to_be_hidden()
