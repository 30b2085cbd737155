"""A person tries the horde in the browser: the answer streams, stops, and says in words what went wrong."""

from itertools import count
from typing import Any

import pytest
from playwright.sync_api import expect

from tests.browser.conftest import Open, Tab
from tests.support.hand_worker import HandWorker, call
from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import wait_until

_NUMBERS = count()


class Conversation:
    """A chat page, and the worker that answers it."""

    def __init__(self, horde: HordeProcesses, tab: Tab) -> None:
        self.horde = horde
        self.tab = tab
        self.page = tab.page
        self.worker = HandWorker(horde, f"browser-{next(_NUMBERS)}")
        self.worker.pop()
        self.job = ""

    def begin(self, text: str = "Tell me.") -> None:
        """Choose the worker's model, and ask; the worker takes the job."""
        wait_until(self._is_listed, 20, "the model is not online at the front")
        self.page.reload()
        self.page.get_by_label("Model").select_option(self.worker.model)
        self.page.get_by_label("API key").fill(KEYS.demo)
        self.send(text)

    def write(self, text: str) -> None:
        """Write and press Enter."""
        self.page.get_by_label("Message").fill(text)
        self.page.keyboard.press("Enter")

    def send(self, text: str) -> list[tuple[str, str]]:
        """Write and press Enter as soon as the page takes it; the worker takes the job. Returns who said what in it."""
        expect(self.page.get_by_role("button", name="Send")).to_be_enabled()
        self.write(text)
        job = self.worker.wait_for_job()
        self.job = str(job["id"])
        return [(each["role"], each["content"]) for each in job["payload"]["messages"]]

    def post(self, seq: int, delta: str) -> dict[str, Any]:
        """Post as the worker."""
        body = {"id": self.job, "seq": seq, "delta": delta}
        return call("POST", f"{self.horde.native}/api/v2/generate/text/progress", body, KEYS.worker).body

    def submit(self, text: str) -> None:
        """Submit the reply."""
        assert self.worker.submit(self.job, {"message": {"content": text}, "finish_reason": "stop"}).status == 200

    @property
    def reply(self) -> Any:
        """The newest reply on the page."""
        return self.page.locator(".turn.assistant").last

    def _is_listed(self) -> bool:
        return self.worker.model in str(call("GET", f"{self.horde.front}/v1/models").body)


@pytest.fixture
def conversation(horde: HordeProcesses, open_tab: Open) -> Conversation:
    """A page that is ready to be asked with."""
    return Conversation(horde, open_tab(f"{horde.front}/chat"))


def test_a_reply_streams_and_says_who_wrote_it_and_what_it_cost(conversation: Conversation) -> None:
    conversation.begin()
    conversation.post(0, "Hello ")
    expect(conversation.reply.locator(".said")).to_have_text("Hello ")
    expect(conversation.reply).to_have_attribute("aria-busy", "true")
    conversation.submit("Hello there.")
    expect(conversation.reply.locator(".said")).to_have_text("Hello there.")
    expect(conversation.reply).not_to_have_attribute("aria-busy", "true")
    expect(conversation.reply).to_contain_text(f"By hand-{conversation.worker.model}")
    expect(conversation.reply).to_contain_text("kudos")
    conversation.tab.require_accessible()


def test_the_next_message_goes_with_the_conversation(conversation: Conversation) -> None:
    conversation.begin("My name is Ann.")
    conversation.submit("Hello Ann.")
    asked = conversation.send("Who am I?")
    assert asked == [("user", "My name is Ann."), ("assistant", "Hello Ann."), ("user", "Who am I?")]
    conversation.submit("Ann.")
    expect(conversation.reply.locator(".said")).to_have_text("Ann.")


def test_what_is_sent_while_a_reply_is_under_way_stays_where_it_was_written_and_the_page_says_why(
    conversation: Conversation,
) -> None:
    conversation.begin()
    conversation.write("And then?")
    conversation.post(0, "Hello ")
    expect(conversation.reply.locator(".said")).to_have_text("Hello ")
    expect(conversation.page.get_by_role("status")).to_have_text(
        "A reply is under way. Send this when it has ended, or stop it."
    )
    expect(conversation.page.get_by_label("Message")).to_have_value("And then?")
    conversation.submit("Hello there.")
    expect(conversation.page.locator("#progress")).to_have_text("")
    assert conversation.send("And then?")[-1] == ("user", "And then?")


@pytest.mark.parametrize("way", ["button", "Escape"])
def test_a_reply_is_stopped_and_cancelled_and_what_was_said_stays(conversation: Conversation, way: str) -> None:
    conversation.begin()
    conversation.post(0, "Hello ")
    expect(conversation.reply.locator(".said")).to_have_text("Hello ")
    if way == "button":
        conversation.page.get_by_role("button", name="Stop").click()
    else:
        conversation.page.keyboard.press("Escape")
    expect(conversation.page.get_by_text("Stopped.")).to_be_visible()
    expect(conversation.page.get_by_label("Message")).to_be_focused()
    expect(conversation.reply.locator(".said")).to_have_text("Hello ")
    seq = count(1)
    wait_until(lambda: conversation.post(next(seq), "x").get("cancelled") is True, 20, "the request was not cancelled")


def test_what_was_stopped_before_it_began_goes_back_to_where_it_was_written(conversation: Conversation) -> None:
    conversation.begin("Never mind.")
    conversation.page.get_by_role("button", name="Stop").click()
    expect(conversation.page.get_by_label("Message")).to_have_value("Never mind.")
    expect(conversation.page.locator(".turn")).to_have_count(0)


def test_a_refusal_is_said_in_words_and_nothing_written_is_lost(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/chat")
    tab.expected.append(401)
    tab.page.get_by_label("Model").select_option(MODEL)
    tab.page.get_by_label("API key").fill("no-such-key-in-the-horde")
    tab.page.get_by_label("Message").fill("Hello?")
    tab.page.get_by_role("button", name="Send").click()
    expect(tab.page.get_by_role("alert")).to_contain_text("Incorrect API key provided")
    expect(tab.page.get_by_label("Message")).to_have_value("Hello?")
    expect(tab.page.locator(".turn")).to_have_count(0)
    tab.require_accessible()


def test_what_cannot_be_a_key_is_not_sent(horde: HordeProcesses, open_tab: Open) -> None:
    page = open_tab(f"{horde.front}/chat").page
    page.get_by_label("Model").select_option(MODEL)
    page.get_by_label("API key").fill("clé de nobody")
    page.get_by_label("Message").fill("Hello?")
    page.get_by_role("button", name="Send").click()
    expect(page.get_by_label("API key")).to_be_focused()
    expect(page.get_by_label("Message")).to_have_value("Hello?")
    page.get_by_label("API key").fill(f" {KEYS.demo} ")
    page.get_by_role("button", name="Send").click()
    expect(page.locator(".turn.assistant")).to_contain_text("kudos")


def test_a_reply_that_breaks_off_is_said_in_words(conversation: Conversation) -> None:
    conversation.begin()
    conversation.post(0, "Hello ")
    expect(conversation.reply.locator(".said")).to_have_text("Hello ")
    body = {"id": conversation.job, "state": "faulted", "fault": "backend_error"}
    call("POST", f"{conversation.horde.native}/api/v2/generate/text/submit", body, KEYS.worker)
    conversation.job = str(conversation.worker.wait_for_job()["id"])
    conversation.post(0, "Good morning")
    expect(conversation.page.get_by_role("alert")).to_contain_text("Discard it and ask again")


def test_the_anonymous_key_is_there_and_the_keyboard_is_enough(horde: HordeProcesses, open_tab: Open) -> None:
    tab = open_tab(f"{horde.front}/chat", "phone")
    expect(tab.page.get_by_label("API key")).to_have_value("0000000000")
    expect(tab.page.get_by_label("Model").locator("option", has_text=MODEL).first).to_be_attached()
    tab.tab_to("model")
    tab.page.keyboard.type(MODEL)
    tab.tab_to("message")
    tab.page.keyboard.type("Say it [[say=by keyboard]]")
    tab.page.keyboard.press("Shift+Enter")
    tab.page.keyboard.type("please")
    tab.page.keyboard.press("Enter")
    expect(tab.page.locator(".turn.assistant .said")).to_have_text("by keyboard")
    expect(tab.page.locator(".turn.user .said")).to_have_text("Say it [[say=by keyboard]]\nplease")
    tab.require_no_sideways_scrolling()


def test_a_reply_is_text_and_never_markup(conversation: Conversation) -> None:
    conversation.begin()
    conversation.submit("<img src=x onerror=alert(1)>")
    expect(conversation.reply.locator(".said")).to_have_text("<img src=x onerror=alert(1)>")
    assert conversation.page.locator(".turn img").count() == 0


def test_a_new_conversation_begins_empty_and_stops_the_old_one(conversation: Conversation) -> None:
    conversation.begin()
    conversation.post(0, "Hello ")
    expect(conversation.reply.locator(".said")).to_have_text("Hello ")
    conversation.page.get_by_role("button", name="New conversation").click()
    expect(conversation.page.locator(".turn")).to_have_count(0)
    assert conversation.send("Anew") == [("user", "Anew")]
    conversation.submit("Yes.")
    expect(conversation.reply.locator(".said")).to_have_text("Yes.")


def test_without_scripts_the_page_says_what_to_do(horde: HordeProcesses, open_tab: Open) -> None:
    page = open_tab(f"{horde.front}/chat", scripts=False).page
    expect(page.locator("noscript p")).to_be_visible()
    assert "This page needs scripts." in page.locator("noscript p").inner_text()
