"""What holds for every page: contrast, names, order, width, in both colour schemes; and no complaint of the browser."""

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import SIZES, Open
from tests.support.horde import HordeProcesses

FRONT_PAGES = ("/", "/chat", "/status", "/register", "/privacy", "/terms", "/sponsors")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("path", FRONT_PAGES)
def test_a_page_is_accessible_and_fits(
    horde: HordeProcesses, open_tab: Open, path: str, scheme: str, size: str
) -> None:
    tab = open_tab(f"{horde.front}{path}", size, scheme)
    tab.page.get_by_role("heading", level=1).wait_for()
    tab.require_accessible()
    tab.require_no_sideways_scrolling()


@pytest.mark.parametrize("path", ["/api", "/docs"])
def test_a_document_of_routes_is_shown(horde: HordeProcesses, open_tab: Open, path: str) -> None:
    tab = open_tab(f"{horde.front}{path}")
    tab.page.locator(".opblock").first.wait_for()


@pytest.mark.parametrize("path", FRONT_PAGES)
def test_the_first_stop_of_the_keyboard_leads_past_the_links(horde: HordeProcesses, open_tab: Open, path: str) -> None:
    tab = open_tab(f"{horde.front}{path}")
    tab.page.evaluate("document.activeElement.blur()")
    tab.tab_to("To the content")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator("#content")).to_be_focused()


def test_every_link_between_pages_leads_somewhere(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/")
    seen, waiting = set[str](), {"/"}
    while waiting:
        path = waiting.pop()
        seen.add(path)
        answer = tab.page.request.get(f"{horde.front}{path}")
        assert answer.status == 200, path
        if "text/html" in answer.headers["content-type"]:
            tab.page.goto(f"{horde.front}{path}")
            links = tab.page.eval_on_selector_all("a[href^='/']", "all => all.map((a) => a.pathname)")
            waiting |= set(links) - seen
    assert {*FRONT_PAGES[:-1], "/docs", "/api", "/v1/models"} <= seen


def test_the_native_api_shows_its_status_at_its_root(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.native}/")
    tab.page.get_by_role("heading", name="How the horde is doing").wait_for()
    assert tab.page.get_by_role("link", name="Chat").count() == 0
    tab.require_accessible()
