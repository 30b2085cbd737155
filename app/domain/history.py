"""The last hour by minutes: what the status page's charts are drawn from (operations O4, decision 0071).

A minute holds one look at the horde. Minutes at which nobody looked are gaps, and are shown as such.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import orjson

MINUTES = 60
"""How much is shown, and kept."""

MOST_MODELS = 50
"""Models of one minute that are kept by name, those with the most workers; more would fit no chart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Minute:
    """One look: `at` in minutes since the epoch, `wait_seconds` None where nothing was answered."""

    at: int
    queued: int | None = None
    wait_seconds: float | None = None
    workers: Mapping[str, int] = field(default_factory=dict)

    def encode(self) -> bytes:
        """The look as it is kept."""
        kept = dict(Counter(self.workers).most_common(MOST_MODELS))
        return orjson.dumps({"at": self.at, "queued": self.queued, "wait": self.wait_seconds, "workers": kept})

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read what `encode` wrote.

        Raises ValueError, KeyError or TypeError when it is something else.
        """
        data: dict[str, Any] = orjson.loads(payload)
        return cls(
            at=int(data["at"]),
            queued=None if data["queued"] is None else int(data["queued"]),
            wait_seconds=None if data["wait"] is None else float(data["wait"]),
            workers={str(model): int(count) for model, count in data["workers"].items()},
        )


def last_hour(looks: Iterable[Minute], now: int) -> tuple[Minute | None, ...]:
    """The sixty minutes that end with `now`, oldest first; None where nobody looked."""
    by_minute = {look.at: look for look in looks}
    return tuple(by_minute.get(minute) for minute in range(now - MINUTES + 1, now + 1))


def leading_models(hour: Sequence[Minute | None], most: int) -> tuple[str, ...]:
    """The models that most workers served within the hour, by name; those beyond `most` are left out."""
    largest: dict[str, int] = {}
    for minute in hour:
        for model, count in (minute.workers if minute is not None else {}).items():
            largest[model] = max(count, largest.get(model, 0))
    ranked = sorted(largest, key=lambda model: (-largest[model], model))
    return tuple(sorted(ranked[:most]))
