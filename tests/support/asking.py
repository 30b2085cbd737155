"""A chat request that runs beside the test, so that something can die in its middle."""

from concurrent.futures import Future, ThreadPoolExecutor
from types import TracebackType
from typing import Self

import openai
from openai.types.chat import ChatCompletion

from tests.support.horde import MODEL, HordeProcesses
from tests.support.services import wait_until

PATIENCE_SECONDS = 90


class Asking:
    """One request under way, found again in the database by its text."""

    def __init__(self, horde: HordeProcesses, text: str, *, max_tokens: int = 64, slow_workers: bool = True) -> None:
        self.horde = horde
        self.text = text
        self._max_tokens = max_tokens
        self._options = {"slow_workers": slow_workers}
        self._pool = ThreadPoolExecutor(1)
        self._answer: Future[ChatCompletion] | None = None

    def __enter__(self) -> Self:
        self._answer = self._pool.submit(self._ask)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pool.shutdown(wait=kind is None)

    def answer(self) -> ChatCompletion:
        """The answer; raises what the client was told instead."""
        assert self._answer is not None
        return self._answer.result(PATIENCE_SECONDS)

    def wait_for(self, state: str) -> None:
        """Wait until a generation of this request is in this state."""
        wait_until(lambda: state in self.generation_states(), 30, f"no generation of {self.text!r} is {state}")

    def generation_states(self) -> list[str]:
        """The states of all its generations, oldest first."""
        rows = self.horde.query(
            "SELECT g.state FROM generations g JOIN request_bodies b ON b.request_id = g.request_id"
            " WHERE strpos(b.prompt, :text) > 0 ORDER BY g.popped_at",
            text=self.text,
        )
        return [str(state) for (state,) in rows]

    def request_states(self) -> list[str]:
        """The states of the requests with this text: one, unless something was done twice."""
        rows = self.horde.query(
            "SELECT r.state FROM horde_requests r JOIN request_bodies b ON b.request_id = r.id"
            " WHERE strpos(b.prompt, :text) > 0",
            text=self.text,
        )
        return [str(state) for (state,) in rows]

    def charges(self) -> int:
        """How often this request was charged."""
        rows = self.horde.query(
            "SELECT count(*) FROM ledger_entries e JOIN generations g ON e.business_key = 'generation:' || g.id"
            " JOIN request_bodies b ON b.request_id = g.request_id"
            " WHERE e.kind = 'charge' AND strpos(b.prompt, :text) > 0",
            text=self.text,
        )
        return int(str(rows[0][0]))

    def _ask(self) -> ChatCompletion:
        client: openai.OpenAI = self.horde.openai(timeout=PATIENCE_SECONDS)
        return client.chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": self.text}],
            max_tokens=self._max_tokens,
            extra_body={"horde": self._options},
        )
