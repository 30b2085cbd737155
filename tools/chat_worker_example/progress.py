"""Live progress of one job: what is written so far, about once a second, and signs of life (details D6, D15).

A post is `{id, seq, delta, reasoning_delta?}`; its `seq` counts from 0. A heartbeat is `{id}`
alone. The answers, and what they mean to a worker:

| answer | then |
| --- | --- |
| 200 `{cancelled, next_seq}` | go on; a streamed job that is cancelled is over, and is not submitted |
| 409 `{next_seq}` | send again from there |
| 413 | no more text; signs of life go on, and the reply is submitted |
| 404 | the lease was lost: ask for it back, and send again from the start; else go on without |
| 410 | the job is over, and is not submitted |
"""

import asyncio
from dataclasses import dataclass, field

from .chat import Json
from .events import emit
from .horde import HordeClient, HordeUnavailable, ProgressAnswer
from .text import mend, whole_characters
from .waiting import Backoff

CANCELLED = "cancelled"
ENDED = "ended"


@dataclass
class Progress:
    """The posts of one job. `over` is set once the horde wants no reply to it; `end` then says why."""

    horde: HordeClient
    job_id: str
    streamed: bool
    every: float
    heartbeat_every: float
    over: asyncio.Event = field(default_factory=asyncio.Event)
    end: str | None = None
    posts: int = 0
    _content: str = ""
    _reasoning: str = ""
    _batches: list[Json] = field(default_factory=list)
    _next_seq: int = 0
    _takes_text: bool = True
    _listening: bool = True
    _grown: asyncio.Event = field(default_factory=asyncio.Event)

    def add(self, content: str, reasoning: str) -> None:
        """Takes the next piece of the reply."""
        self._content += content
        self._reasoning += reasoning
        self._grown.set()

    async def run(self) -> None:
        """Posts until nobody listens any more, or until it is cancelled because the reply is whole."""
        backoff = Backoff()
        while self._listening and not self.over.is_set():
            body = self._next_post()
            if body is None:
                body = await self._something_to_say()
            try:
                answer = await self.horde.progress(body)
                await self._take(answer, body)
            except HordeUnavailable as error:
                emit("progress_failed", id=self.job_id, reason=error.reason)
                await asyncio.sleep(error.retry_after or backoff.next())
                continue
            backoff.reset()
            caught_up = self._next_seq >= len(self._batches)
            if caught_up or answer.status != 200:
                await asyncio.sleep(self.every)

    async def _something_to_say(self) -> Json:
        """The next text, or a heartbeat when there is none for so long."""
        try:
            async with asyncio.timeout(self.heartbeat_every):
                while True:
                    await self._grown.wait()
                    self._grown.clear()
                    body = self._next_post()
                    if body is not None:
                        return body
        except TimeoutError:
            return {"id": self.job_id}

    def _next_post(self) -> Json | None:
        """The batch whose turn it is. A batch keeps its text for good, since a repeat must be the same."""
        if not self.streamed or not self._takes_text:
            return None
        if self._next_seq == len(self._batches):
            batch = self._cut()
            if batch is None:
                return None
            self._batches.append(batch)
        return {"id": self.job_id, "seq": self._next_seq, **self._batches[self._next_seq]}

    def _cut(self) -> Json | None:
        end, reasoning_end = whole_characters(self._content), whole_characters(self._reasoning)
        content, self._content = mend(self._content[:end]), self._content[end:]
        reasoning, self._reasoning = mend(self._reasoning[:reasoning_end]), self._reasoning[reasoning_end:]
        if not content and not reasoning:
            return None
        return {"delta": content, "reasoning_delta": reasoning} if reasoning else {"delta": content}

    async def _take(self, answer: ProgressAnswer, body: Json) -> None:
        self.posts += 1
        if answer.status == 200:
            # A job that is not streamed runs on after a cancel: its reply is paid for (details D7).
            if answer.cancelled and self.streamed:
                self._finish(CANCELLED)
            if "seq" in body:
                self._next_seq = body["seq"] + 1
        elif answer.status == 409 and answer.next_seq is not None and answer.next_seq <= len(self._batches):
            self._next_seq = answer.next_seq
        elif answer.status == 413 and "seq" in body:
            self._takes_text = False
        elif answer.status == 410:
            self._finish(ENDED)
        elif answer.status == 404 and await self.horde.restore_lease(self.job_id):
            self._next_seq = 0
        else:
            self._listening = False

    def _finish(self, end: str) -> None:
        self.end = end
        self.over.set()
