"""What the live view shows, kept up to date by the events of the log alone."""

from collections import deque
from dataclasses import dataclass, field

from .events import Event

ENDS = ("job_done", "job_faulted", "job_refused", "job_lost", "job_cancelled", "job_ended")
SPEED_SECONDS = 60.0
"""Tokens a second are a mean over so long."""

RECENT = 8


@dataclass
class Board:
    """Counts and jobs of one run. Times are those of the events."""

    worker: str = ""
    model: str = ""
    state: str = "starting"
    kudos: float = 0.0
    ended: dict[str, int] = field(default_factory=dict)
    running: dict[str, float] = field(default_factory=dict)
    """Id of each running job, with when it was popped."""
    recent: deque[Event] = field(default_factory=lambda: deque(maxlen=RECENT))
    """The ends of the last jobs."""
    _written: deque[tuple[float, int]] = field(default_factory=deque)

    def take(self, event: Event) -> None:
        """Takes one event of the log."""
        name, when, job = str(event["event"]), _number(event["time"]), str(event.get("id"))
        if name == "job_popped":
            self.running[job] = when
            self.state = "working"
        elif name in ENDS:
            self._job_ended(name, when, job, event)
        elif name in {"starting", "declared"}:
            self.worker = str(event.get("worker") or self.worker)
            self.model = str(event.get("model") or self.model)
            self.state = "waiting for the backend" if name == "starting" else "asking for jobs"
        elif not name.startswith(("submit", "progress")):
            reason = event.get("reason") or event.get("message")
            self.state = name.replace("_", " ") + (f": {reason}" if reason else "")

    def _job_ended(self, name: str, when: float, job: str, event: Event) -> None:
        self.running.pop(job, None)
        self.ended[name] = self.ended.get(name, 0) + 1
        self.kudos += _number(event.get("reward"))
        self.recent.append(event)
        usage = event.get("usage")
        if isinstance(usage, dict):
            self._written.append((when, int(_number(usage.get("completion_tokens")))))
        self.state = "working" if self.running else "asking for jobs"

    def tokens_per_second(self, now: float) -> float:
        """Tokens written a second, over the last minute."""
        while self._written and self._written[0][0] < now - SPEED_SECONDS:
            self._written.popleft()
        return sum(tokens for _, tokens in self._written) / SPEED_SECONDS


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) else 0.0
