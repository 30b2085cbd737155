"""One live stream between its reader and its client."""

import asyncio
import time
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.domain.progress_entries import ProgressEntry
from front.errors import FrontError
from front.metrics import FrontMetrics
from front.progress_reader import ProgressReader
from front.relay import CONTENT, HOLD_SECONDS, REASONING, ROOM, LiveStreams, Piece, Relay
from tests.front.texts import EMOJI, split_texts


class Clock:
    """The monotonic clock, as the test says."""

    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr("front.relay.time", clock)
    return clock


class Feed:
    """A relay with what a reader would bring."""

    def __init__(self, *, is_paced: bool, shows_reasoning: bool = True) -> None:
        reader = ProgressReader("redis://nowhere", FrontMetrics(), poll_seconds=10, is_blind=lambda: False)
        self.relay = Relay(LiveStreams(reader, is_paced=is_paced), "r", shows_reasoning=shows_reasoning)
        self._places = 0

    def post(self, *entries: ProgressEntry) -> bool:
        return self.relay._take([(f"{number}-0", entry) for number, entry in enumerate(entries)])

    def text(self, seq: int, delta: str, generation: str = "g1", reasoning: str = "") -> bool:
        return self.post(ProgressEntry(generation_id=generation, seq=seq, delta=delta, reasoning_delta=reasoning))


async def test_without_pacing_a_post_goes_out_as_it_is() -> None:
    feed = Feed(is_paced=False)
    feed.text(0, "Hello world")
    assert feed.relay.pieces() == [Piece(CONTENT, "Hello world")]
    assert feed.relay.pieces() == []


async def test_with_pacing_a_post_goes_out_bit_by_bit_and_the_rest_at_once_at_the_end(clock: Clock) -> None:
    feed = Feed(is_paced=True)
    feed.text(0, "x" * 101)
    assert feed.relay.pieces() == [Piece(CONTENT, "x")]
    clock.now += 0.5
    assert feed.relay.pieces() == [Piece(CONTENT, "x" * 50)]
    assert feed.relay.last_pieces("x" * 101 + "!", "") == [Piece(CONTENT, "x" * 50 + "!")]


async def test_reasoning_goes_before_content_and_not_at_all_where_it_is_not_wanted() -> None:
    feed, silent = Feed(is_paced=False), Feed(is_paced=False, shows_reasoning=False)
    for each in (feed, silent):
        each.text(0, "", reasoning="hm")
        each.text(1, "yes", reasoning="!")
    assert feed.relay.pieces() == [Piece(REASONING, "hm!"), Piece(CONTENT, "yes")]
    assert silent.relay.pieces() == [Piece(CONTENT, "yes")]
    assert silent.relay.last_pieces("yes", "") == []
    assert (silent.relay.relayed() or {})["reasoning_content"] == "hm!"


async def test_another_text_of_a_second_worker_is_an_error_from_then_on() -> None:
    feed = Feed(is_paced=False)
    feed.text(0, "Hello")
    feed.relay.pieces()
    feed.text(0, "Bonjour", "g2")
    for _ in range(2):
        with pytest.raises(FrontError) as error:
            feed.relay.pieces()
        assert error.value.problem.code == "StreamDiverged"


async def test_a_reply_with_another_text_is_an_error() -> None:
    feed = Feed(is_paced=False)
    feed.text(0, "Hello", reasoning="hm")
    feed.relay.pieces()
    for content, reasoning in (("Bonjour", "hm"), ("Hello", "well")):
        with pytest.raises(FrontError):
            feed.relay.last_pieces(content, reasoning)


@pytest.mark.parametrize("emoji", EMOJI)
async def test_an_emoji_cut_by_the_worker_arrives_whole(clock: Clock, emoji: str) -> None:
    feed, got = Feed(is_paced=True), []
    for seq, character in enumerate(f"a{emoji}b"):
        feed.text(seq, character)
        clock.now += 1.0
        got += [piece.text for piece in feed.relay.pieces()]
    got += [piece.text for piece in feed.relay.last_pieces(f"a{emoji}b", "")]
    assert "".join(got) == f"a{emoji}b"
    assert sum(emoji in piece for piece in got) == 1


async def test_half_an_emoji_is_let_go_when_the_other_half_does_not_come(clock: Clock) -> None:
    feed = Feed(is_paced=False)
    feed.text(0, "ok \N{THUMBS UP SIGN}")
    assert feed.relay.pieces() == [Piece(CONTENT, "ok ")]
    clock.now += HOLD_SECONDS
    assert feed.relay.pieces() == [Piece(CONTENT, "\N{THUMBS UP SIGN}")]


async def test_a_slow_client_leaves_its_text_in_redis_until_it_has_room() -> None:
    feed = Feed(is_paced=False)
    assert feed.text(0, "x" * 10)
    assert not feed.text(1, "x" * ROOM)
    reader = feed.relay._reader
    reader._marked.clear()
    feed.relay.pieces()
    assert list(reader._marked) == [feed.relay._follower]


async def test_a_rest_ends_with_a_post_or_at_its_time() -> None:
    feed = Feed(is_paced=False)
    async with asyncio.timeout(5):
        await feed.relay.rest(time.monotonic() + 0.02)
        resting = asyncio.create_task(feed.relay.rest(time.monotonic() + 60))
        await asyncio.sleep(0)
        feed.text(0, "news")
        await resting
    feed.relay.close()


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(posts=split_texts(), gaps=st.lists(st.floats(0.0, 2.5), min_size=1, max_size=9), is_paced=st.booleans())
def test_any_text_cut_anywhere_in_any_rhythm_arrives_as_it_is(
    monkeypatch: pytest.MonkeyPatch, posts: tuple[str, list[str]], gaps: list[float], is_paced: bool
) -> None:
    clock = Clock()
    monkeypatch.setattr("front.relay.time", clock)
    text, deltas = posts

    async def run() -> list[str]:
        feed, got = Feed(is_paced=is_paced), []
        for seq, delta in enumerate(deltas):
            feed.text(seq, delta)
            until = clock.now + gaps[seq % len(gaps)]
            while clock.now < until:
                clock.now = min(until, clock.now + 0.3)
                got += [piece.text for piece in feed.relay.pieces()]
        return [*got, *(piece.text for piece in feed.relay.last_pieces(text, ""))]

    got: Any = asyncio.run(run())
    assert "".join(got) == text
    assert all(got)
