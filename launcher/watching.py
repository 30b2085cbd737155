"""Waiting for programs, and noticing the ones that fail."""

import contextlib
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future

from launcher.errors import LauncherError
from launcher.home import Home
from launcher.progress import Progress
from launcher.supervision import ProgramState, Supervisor, log_tail

POLL_SECONDS = 0.1
WATCH_SECONDS = 0.5
SETTLED_SECONDS = 2

Check = Callable[[], str | None]
"""Returns none when the awaited thing is there, else what is missing."""


class Watch:
    """Keeps an eye on the programs of one supervisor."""

    def __init__(self, home: Home, supervisor: Supervisor, progress: Progress) -> None:
        self._home = home
        self._supervisor = supervisor
        self._progress = progress

    def wait(self, program: str, what: str, seconds: float, check: Check) -> None:
        """Wait until a check is content; `program` is whose log explains it when it never is.

        Raises LauncherError when time runs out, or when any program fails meanwhile.
        """
        deadline = time.monotonic() + seconds
        while (missing := self._ask(check)) is not None:
            if time.monotonic() > deadline:
                raise LauncherError(f"{what} did not work within {seconds:.0f} s: {missing}\n{self._tail(program)}")
            time.sleep(POLL_SECONDS)
        self._progress.say(f"{what} works")

    def settle(self) -> None:
        """Wait until every program has run for a moment, which shows up those that end at once.

        Raises LauncherError that names them.
        """
        while any(state.seconds < SETTLED_SECONDS for state in self._healthy_states()):
            time.sleep(POLL_SECONDS)

    def follow(self) -> None:
        """Watch for as long as everything lives; a program that comes back by itself is mentioned.

        Raises LauncherError when the supervisor gives a program up, or is gone itself.
        """
        pids: dict[str, int] = {}
        while True:
            states = self._supervisor.states()
            self._refuse([state for state in states if state.given_up])
            for state in states:
                if state.pid and pids.setdefault(state.name, state.pid) != state.pid:
                    pids[state.name] = state.pid
                    self._progress.say(f"{state.name} had ended and was started again")
            time.sleep(WATCH_SECONDS)

    def _ask(self, check: Check) -> str | None:
        """Ask in a thread, so that a slow answer does not hide a failing program."""
        answer: Future[str | None] = Future()

        def ask() -> None:
            try:
                answer.set_result(check())
            except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to the thread that waits
                answer.set_exception(error)

        threading.Thread(target=ask, daemon=True).start()
        while True:
            self._healthy_states()
            with contextlib.suppress(TimeoutError):
                return answer.result(POLL_SECONDS)

    def _healthy_states(self) -> list[ProgramState]:
        states = self._supervisor.states()
        self._refuse([state for state in states if state.failed_to_start])
        return states

    def _refuse(self, failed: list[ProgramState]) -> None:
        if failed:
            reports = [f"{state.name} failed: {state.problem}.\n{self._tail(state.name)}" for state in failed]
            raise LauncherError("\n".join(reports))

    def _tail(self, program: str) -> str:
        log = self._home.log_of(program)
        return f"The last lines of {log}:\n{log_tail(log)}"
