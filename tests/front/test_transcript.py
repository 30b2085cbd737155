"""What was posted and said, and whether it goes together: every case of the reconcile table."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.progress_entries import ProgressEntry
from front.transcript import Diverged, Transcript
from tests.front.texts import split_texts


def entry(seq: int, delta: str = "", generation: str = "g1", reasoning: str = "") -> ProgressEntry:
    return ProgressEntry(generation_id=generation, seq=seq, delta=delta, reasoning_delta=reasoning)


def ended(generation: str = "g1") -> ProgressEntry:
    return ProgressEntry(generation_id=generation, ended=True)


def said(*entries: ProgressEntry) -> Transcript:
    """A transcript of which everything was said."""
    transcript = Transcript()
    for each in entries:
        transcript.accept(each)
    transcript.reasoning.say(len(transcript.reasoning.ready))
    transcript.content.say(len(transcript.content.ready))
    return transcript


@pytest.mark.parametrize(("final", "rest"), [("Hello", ""), ("Hello world", " world")])
def test_a_final_reply_that_equals_or_extends_what_was_said_is_completed(final: str, rest: str) -> None:
    assert said(entry(0, "Hel"), entry(1, "lo")).content.rest_of(final) == rest


@pytest.mark.parametrize("final", ["Hell", "", "hello", "Help me", " Hello"])
def test_a_final_reply_that_begins_otherwise_diverges(final: str) -> None:
    with pytest.raises(Diverged):
        said(entry(0, "Hello")).content.rest_of(final)


def test_reasoning_is_reconciled_by_itself() -> None:
    transcript = said(entry(0, "yes", reasoning="hm"))
    assert transcript.reasoning.rest_of("hm, well") == ", well"
    assert transcript.content.rest_of("yes!") == "!"
    with pytest.raises(Diverged):
        transcript.reasoning.rest_of("h")


def test_a_second_worker_with_the_same_text_goes_on_where_the_first_stopped() -> None:
    transcript = said(entry(0, "Hello wor"))
    transcript.accept(ended())
    transcript.accept(entry(0, "Hel", "g2"))
    assert transcript.content.ready == ""
    transcript.accept(entry(1, "lo world", "g2"))
    assert transcript.content.ready == "ld"


def test_a_second_worker_with_another_text_diverges_at_once() -> None:
    transcript = said(entry(0, "Hello"), ended(), entry(0, "Hel", "g2"))
    transcript = said(entry(0, "Hello"))
    transcript.accept(entry(0, "Hel", "g2"))
    with pytest.raises(Diverged):
        transcript.accept(entry(1, "met", "g2"))


def test_a_second_worker_may_say_anything_while_nothing_was_said() -> None:
    transcript = Transcript()
    transcript.accept(entry(0, "Hello"))
    transcript.accept(entry(0, "Bonjour", "g2"))
    assert transcript.content.ready == "Bonjour"


def test_text_of_a_generation_that_ended_is_not_said_any_more() -> None:
    transcript = Transcript()
    for each in (entry(0, "Hello"), ended(), entry(1, " again")):
        transcript.accept(each)
    assert transcript.content.ready == ""


def test_a_generation_that_was_replaced_is_not_heard_again() -> None:
    transcript = said(entry(0, "Hi"), entry(0, "Hi", "g2"))
    transcript.accept(entry(1, " from the dead"))
    assert transcript.content.ready == ""


def test_an_entry_that_comes_twice_counts_once() -> None:
    assert said(entry(0, "a"), entry(0, "a"), entry(1, "b"), entry(1, "b"), entry(2, "c")).content.said == "abc"


@pytest.mark.parametrize("first", [1, 7])
def test_after_a_hole_nothing_is_said_until_the_reply_fills_it(first: int) -> None:
    transcript = said(entry(first, "later"))
    assert transcript.content.said == ""
    transcript = said(entry(0, "a"), entry(2, "c"), entry(3, "d"), entry(1, "b"))
    assert transcript.content.said == "a"
    assert transcript.content.rest_of("abcd") == "bcd"


def test_posts_that_begin_anew_after_redis_forgot_them_are_said_beyond_what_they_repeat() -> None:
    transcript = said(entry(0, "one "), entry(1, "two "))
    transcript.accept(entry(0, "one two three "))
    assert transcript.content.ready == "three "


def test_halves_of_one_character_posted_apart_wait_for_the_reply() -> None:
    transcript = Transcript()
    transcript.accept(entry(0, "ok \ufffd"))
    transcript.content.say(3)
    transcript.accept(entry(1, "\ufffd more"))
    assert transcript.content.ready == ""
    assert transcript.content.rest_of("ok \N{GRINNING FACE} more") == "\N{GRINNING FACE} more"


def test_a_cancel_reports_what_the_current_generation_posted_of_the_said_text() -> None:
    assert Transcript().relayed() is None
    transcript = said(entry(0, "Hello", reasoning="hm"))
    assert transcript.relayed() == {"generation_id": "g1", "content": "Hello", "reasoning_content": "hm"}
    transcript.accept(entry(0, "Hel", "g2", reasoning="hm"))
    assert transcript.relayed() == {"generation_id": "g2", "content": "Hel", "reasoning_content": "hm"}


@given(split_texts(), split_texts(), st.lists(st.integers(0, 9), max_size=9), st.data())
def test_what_is_said_is_always_how_the_reply_begins(
    content: tuple[str, list[str]], reasoning: tuple[str, list[str]], lost: list[int], data: st.DataObject
) -> None:
    transcript = Transcript()
    for generation in ("g1", "g2"):
        posts = zip(content[1], reasoning[1], strict=False)
        for seq, (delta, thought) in enumerate(posts):
            for _ in range(data.draw(st.integers(1, 2)) if seq not in lost else 0):
                transcript.accept(entry(seq, delta, generation, thought))
            transcript.content.say(data.draw(st.integers(0, 5)))
    whole = transcript.content.said + transcript.content.rest_of(content[0])
    assert whole == content[0]
    assert transcript.reasoning.said == "" or reasoning[0].startswith(transcript.reasoning.said)
