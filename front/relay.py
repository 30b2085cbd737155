"""Live streams: what workers post, paced and cut for each client (front F4, ADR 0062).

The progress reader brings entries, the transcript judges them, the pace says how much is
due, and the wheel wakes the stream then. A stream is no task of its own beyond the one
that sends to its client.
"""

import asyncio
import time
from collections.abc import Sequence
from dataclasses import dataclass

from front import errors
from front.errors import FrontError
from front.graphemes import closed_length, cut_at
from front.pacing import Pace
from front.progress_reader import Entry, ProgressReader
from front.transcript import Diverged, Transcript, Voice
from front.wheel import Wheel

STEP_SECONDS = 0.05
"""Between two chunks of a stream, at least: twenty a second read as flowing."""

CHUNKS_A_SECOND = 2500
"""Chunks of all streams of a process; where there are more streams, steps get longer."""

HOLD_SECONDS = 2.0
"""Longest wait for the other half of an emoji."""

ROOM = 64 * 1024
"""Code points that may wait for a slow client; the rest is left in Redis until it took them."""

CONTENT = "content"
REASONING = "reasoning_content"


@dataclass(frozen=True, slots=True)
class Piece:
    """Text for the client: a delta of content or of reasoning."""

    key: str
    text: str


class Relay:
    """One live stream."""

    __slots__ = (
        "_diverged",
        "_follower",
        "_is_full",
        "_last_post",
        "_pace",
        "_reader",
        "_shows_reasoning",
        "_step",
        "_transcript",
        "_wheel",
        "_woken",
    )

    def __init__(
        self, live: "LiveStreams", request_id: str, *, shows_reasoning: bool, needs_model: bool = False
    ) -> None:
        self._reader, self._wheel, self._step = live.reader, live.wheel, live.step
        self._transcript = Transcript(needs_model=needs_model)
        self._pace = Pace() if live.is_paced else None
        self._shows_reasoning = shows_reasoning
        self._woken = asyncio.Event()
        self._diverged = False
        self._is_full = False
        self._last_post = 0.0
        self._follower = self._reader.follow(request_id, self._take)

    @property
    def model(self) -> str | None:
        """The model that writes; None while that is not known."""
        return self._transcript.model

    def wake(self) -> None:
        """End the rest."""
        self._woken.set()

    async def rest(self, until: float) -> None:
        """Wait until there may be something to say, or until a moment of the monotonic clock."""
        if not self._woken.is_set():
            self._wheel.set(self, min(until, self._next_moment()))
            await self._woken.wait()
        self._woken.clear()

    def pieces(self) -> list[Piece]:
        """What is due.

        Raises FrontError when a worker posted something else than what was said already.
        """
        if self._diverged:
            raise FrontError(errors.diverged())
        now = time.monotonic()
        due = self._waiting if self._pace is None else self._pace.due(now)
        found = []
        for key, voice in self._voices:
            length = self._sayable(voice, due, now)
            if length:
                found.append(Piece(key, voice.say(length)))
                due -= length
                if self._pace is not None:
                    self._pace.took(length)
            if voice.ready:
                break
        if self._is_full and self._waiting < ROOM:
            self._is_full = False
            self._reader.ask(self._follower)
        return found

    def last_pieces(self, content: str, reasoning: str) -> list[Piece]:
        """What the final reply has beyond what was said.

        Raises FrontError when it does not begin with that.
        """
        transcript = self._transcript
        try:
            rest = [Piece(CONTENT, transcript.content.rest_of(content))]
            if self._shows_reasoning:
                rest.insert(0, Piece(REASONING, transcript.reasoning.rest_of(reasoning)))
        except Diverged:
            raise FrontError(errors.diverged()) from None
        return [piece for piece in rest if piece.text]

    def relayed(self) -> dict[str, str] | None:
        """What a cancel tells the horde about the text that was said (details D15)."""
        return self._transcript.relayed()

    def close(self) -> None:
        """Read and wake no more."""
        self._reader.leave(self._follower)
        self._wheel.drop(self)

    @property
    def _voices(self) -> tuple[tuple[str, Voice], ...]:
        content = (CONTENT, self._transcript.content)
        return ((REASONING, self._transcript.reasoning), content) if self._shows_reasoning else (content,)

    @property
    def _waiting(self) -> int:
        return sum(len(voice.ready) for _, voice in self._voices)

    def _sayable(self, voice: Voice, due: int, now: float) -> int:
        """How much of a voice may be said now: so much as is due, and no half of an emoji that may go on."""
        text = voice.ready
        if not text or due <= 0:
            return 0
        is_over = voice is not self._transcript.content and bool(self._transcript.content.ready)
        if not is_over and now < self._last_post + HOLD_SECONDS:
            text = text[: closed_length(text, keycaps=self._pace is not None)]
        return cut_at(text, due) if text else 0

    def _next_moment(self) -> float:
        now = time.monotonic()
        moment = None if self._pace is None else self._pace.next_moment(now, self._step())
        if moment is not None:
            return moment
        return max(now, self._last_post + HOLD_SECONDS) if self._waiting else float("inf")

    def _take(self, entries: Sequence[Entry]) -> bool:
        """Take what was read; whether there is room for more."""
        if entries and not self._diverged:
            self._accept(entries)
        self._is_full = self._waiting >= ROOM
        return not self._is_full

    def _accept(self, entries: Sequence[Entry]) -> None:
        transcript, before, generation = self._transcript, self._waiting, self._transcript.generation_id
        try:
            for _, entry in entries:
                transcript.accept(entry)
        except Diverged:
            self._diverged = True
            self.wake()
            return
        if not self._shows_reasoning:
            transcript.reasoning.say(len(transcript.reasoning.ready))
        self._last_post = time.monotonic()
        if self._pace is None:
            self.wake()
            return
        if transcript.generation_id != generation or self._waiting < before:
            self._pace.forget()
            before = 0
        self._pace.posted(self._waiting - before, self._last_post)
        if not self._woken.is_set():
            self._wheel.bring_forward(self, self._next_moment())


class LiveStreams:
    """What the live streams of a process share."""

    def __init__(self, reader: ProgressReader, *, is_paced: bool) -> None:
        self.reader = reader
        self.wheel = Wheel()
        self.is_paced = is_paced

    def open(self, request_id: str, *, shows_reasoning: bool, needs_model: bool = False) -> Relay:
        """Relay a request's text from its beginning; only text of which the model is known, where that is needed."""
        return Relay(self, request_id, shows_reasoning=shows_reasoning, needs_model=needs_model)

    def step(self) -> float:
        """Seconds between two chunks of one stream, now."""
        return max(STEP_SECONDS, len(self.reader) / CHUNKS_A_SECOND)
