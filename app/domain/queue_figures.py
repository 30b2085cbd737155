"""The queue's figures by requirement class, as the refresh writes them (native-api N4, details D11).

Each class is cut into ranks of equal size by its entries' order, so that the work ahead of any
request follows without a look at the queue: exact while a class has no more entries than ranks.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import accumulate
from math import ceil
from typing import Any, Self

import orjson

RANKS = 32


@dataclass(frozen=True, slots=True)
class Rank:
    """Some neighbours in the queue: their last sort key, how many they are, the tokens they ask for."""

    last: float
    entries: int
    tokens: int


@dataclass(frozen=True, slots=True)
class Work:
    """Queued work: slots that wait, and the tokens they ask for."""

    entries: float = 0
    tokens: float = 0

    def __add__(self, other: "Work") -> "Work":
        return Work(self.entries + other.entries, self.tokens + other.tokens)


@dataclass(frozen=True, slots=True)
class ClassFigures:
    """One class: its ranks in order, with what stands before each of them."""

    ranks: tuple[Rank, ...]
    before: tuple[Work, ...]

    @classmethod
    def of(cls, ranks: Iterable[Rank]) -> Self:
        """Figures of a class with these ranks, which are in order."""
        known = tuple(ranks)
        return cls(known, tuple(accumulate((Work(rank.entries, rank.tokens) for rank in known), initial=Work())))

    @property
    def whole(self) -> Work:
        """Everything of the class."""
        return self.before[-1]

    def ahead(self, sort_key: float) -> Work:
        """What stands before a place in the queue; inside a rank, by proportion."""
        index = bisect_left(self.ranks, sort_key, key=lambda rank: rank.last)
        if index == len(self.ranks):
            return self.whole
        rank = self.ranks[index]
        if rank.entries <= 1 or index == 0:
            return self.before[index]
        first = self.ranks[index - 1].last
        share = (sort_key - first) / (rank.last - first) if rank.last > first else 0.0
        return self.before[index] + Work(share * (rank.entries - 1), share * rank.tokens)


@dataclass(frozen=True, slots=True)
class QueueFigures:
    """The queue at one moment; `at` is in seconds since the epoch."""

    at: float
    classes: Mapping[int, ClassFigures]

    @property
    def entries(self) -> int:
        """Slots that wait."""
        return int(sum(figures.whole.entries for figures in self.classes.values()))

    def encode(self) -> bytes:
        """The figures as they are kept in Redis."""
        classes = [
            [class_id, [[rank.last, rank.entries, rank.tokens] for rank in figures.ranks]]
            for class_id, figures in self.classes.items()
        ]
        return orjson.dumps({"at": self.at, "classes": classes})

    @classmethod
    def decode(cls, payload: bytes) -> Self:
        """Read what `encode` wrote.

        Raises ValueError, KeyError or TypeError when it is something else.
        """
        data: dict[str, Any] = orjson.loads(payload)
        return cls(
            at=float(data["at"]),
            classes={
                int(class_id): ClassFigures.of(
                    Rank(float(last), int(entries), int(tokens)) for last, entries, tokens in ranks
                )
                for class_id, ranks in data["classes"]
            },
        )

    def ahead(self, class_ids: Iterable[int], sort_key: float) -> Work:
        """What stands in these classes before a place in the queue."""
        return sum(
            (self.classes[class_id].ahead(sort_key) for class_id in class_ids if class_id in self.classes), Work()
        )


@dataclass(frozen=True, slots=True)
class Place:
    """Where a request stands: its position from 1 on, whole seconds to wait, and since when the figures know it."""

    position: int = 0
    wait_seconds: int = 0
    known_at: float | None = None


def place(figures: QueueFigures | None, ahead: Work, tokens_per_second: float, entered_at: float) -> Place:
    """The place of a waiting request with this work before it, which its eligible workers could take."""
    position = int(ahead.entries) + 1
    if figures is None:
        return Place(position)
    wait = ceil(ahead.tokens / tokens_per_second) if tokens_per_second > 0 else 0
    return Place(position, wait, figures.at if figures.at >= entered_at else None)
