"""Pages in a real Chromium, over a running horde."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, ConsoleMessage, Page, Response, expect, sync_playwright

CHROMIUM = shutil.which("chromium")
SIZES = {"desktop": (1280, 900), "phone": (390, 844)}
PATIENCE_MS = 20_000
expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium, for one module: its event loop would be in the way of others."""
    if CHROMIUM is None:
        pytest.skip("no chromium on the PATH: install your distribution's package to test the pages in a browser")
    with sync_playwright() as playwright:
        made = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield made
        made.close()


@dataclass
class Tab:
    """An open page, and what went wrong in it."""

    page: Page
    complaints: list[str] = field(default_factory=list)
    expected: list[int] = field(default_factory=list)
    """Statuses that a flow is about; any other failure is a complaint."""

    def __post_init__(self) -> None:
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._heard)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("response", self._answered)

    def _heard(self, message: ConsoleMessage) -> None:
        is_status = "the server responded with a status" in message.text
        if message.type in {"error", "warning"} and not is_status:
            self.complaints.append(message.text)

    def _answered(self, response: Response) -> None:
        if response.status >= 400 and response.status not in self.expected:
            self.complaints.append(f"{response.status} {response.url}")

    def require_accessible(self) -> None:
        """Fail with every rule of axe that the page breaks."""
        results = Axe().run(self.page)
        assert results.violations_count == 0, results.generate_report()

    def require_no_sideways_scrolling(self) -> None:
        """Fail when the page is wider than the window."""
        wide = self.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
        assert wide[0] <= wide[1], wide

    def focused(self) -> str:
        """What has the focus: its id, else its text."""
        return str(self.page.evaluate("document.activeElement.id || document.activeElement.textContent.trim()"))

    def tab_to(self, name: str, most: int = 30) -> None:
        """Press Tab until that has the focus."""
        for _ in range(most):
            self.page.keyboard.press("Tab")
            if self.focused() == name:
                return
        raise AssertionError(f"no way by keyboard to {name}")


Open = Callable[..., Tab]


@pytest.fixture
def open_tab(browser: Browser) -> Iterator[Open]:
    """Opens an address in a window of its own; no page may complain."""
    tabs: list[Tab] = []
    contexts = []

    def opened(url: str, size: str = "desktop", scheme: str = "light", *, scripts: bool = True) -> Tab:
        width, height = SIZES[size]
        context = browser.new_context(
            viewport={"width": width, "height": height},
            color_scheme="dark" if scheme == "dark" else "light",
            java_script_enabled=scripts,
            reduced_motion="reduce",
        )
        context.grant_permissions(["clipboard-read", "clipboard-write"])
        contexts.append(context)
        tab = Tab(context.new_page())
        tabs.append(tab)
        tab.page.goto(url)
        # A browser gives the focus some time after it has loaded the page; keys pressed before that go nowhere.
        begins = tab.page.locator("[autofocus]")
        if begins.count():
            expect(begins.first).to_be_focused()
        return tab

    yield opened
    complaints = [complaint for tab in tabs for complaint in tab.complaints]
    for context in contexts:
        context.close()
    assert complaints == []
