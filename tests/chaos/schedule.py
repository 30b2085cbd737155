"""What goes wrong in a run of the chaos runner, when and for how long: all of it follows from the seed."""

import random
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

PROCESSES = ("web", "front", "verdict", "tasks", "media", "fetch", "beat", "worker")
CUTS = (
    *("front-web", "front-redis"),
    *("web-postgres", "web-redis", "web-s3"),
    *("verdict-postgres", "verdict-redis"),
    *("tasks-postgres", "tasks-redis"),
    *("media-postgres", "media-redis", "media-s3"),
    *("fetch-postgres", "fetch-redis", "fetch-s3"),
    "beat-redis",
    *("worker-front", "worker-backend"),
)
"""Every line between two parts of a horde."""

SEEDS_A_DECK = 8
"""So many seeds in a row, the first a multiple of it, meet every fault."""

SHORTEST, LONGEST = 0.5, 4.0
OVERLAP = 0.3
"""How often a fault begins before the last one is over."""


@dataclass(frozen=True, slots=True)
class Step:
    """One fault: `at` seconds after the load began, for so many seconds. Its name says what, and to whom."""

    at: float
    fault: str
    seconds: float

    @property
    def verb(self) -> str:
        """What is done."""
        return self.fault.partition(" ")[0]

    @property
    def subject(self) -> str:
        """To which process, service or line."""
        return self.fault.partition(" ")[2]

    def __str__(self) -> str:
        return f"{self.at:6.1f} s  {self.fault} for {self.seconds:.1f} s"


def every_fault(*, clock: bool, disk: bool) -> list[str]:
    """All faults that this machine can be given, as `verb subject`."""
    faults = [f"{verb} {name}" for name in PROCESSES for verb in ("kill", "freeze", "terminate")]
    faults += [f"kill-child {name}" for name in ("web", "verdict", "tasks", "media")]
    faults += [f"{verb} {service}" for service in ("postgres", "redis") for verb in ("restart", "crash", "pause")]
    faults += ["flush redis", "stop redis", "stop postgres", "stop s3", "pause s3", "kill backend"]
    faults += [f"{verb} {line}" for line in CUTS for verb in ("cut", "stall")]
    faults += ["repeat messages", "double beat"]
    faults += ["skew beat"] if clock else []
    faults += [f"fill {service}" for service in ("postgres", "redis", "s3")] if disk else []
    return faults


def schedule(seed: int, seconds: float, faults: Sequence[str], *, longest: float = LONGEST) -> list[Step]:
    """Spread this seed's hand of the deck, and what chance adds, over so many seconds.

    `longest` is how long a fault lasts at most.
    """
    chance = random.Random(seed)  # noqa: S311 - chances of a test
    deck = list(faults)
    random.Random(seed // SEEDS_A_DECK).shuffle(deck)  # noqa: S311 - see above
    hand = deck[seed % SEEDS_A_DECK :: SEEDS_A_DECK] or deck
    chance.shuffle(hand)
    steps: list[Step] = []
    at = 1.0
    gap = max(0.0, seconds - len(hand) * (SHORTEST + longest) / 2) / len(hand)
    for fault in _without_end(hand, deck, chance):
        if len(steps) >= len(hand) and at >= seconds:
            return steps
        lasting = round(chance.uniform(SHORTEST, longest), 1)
        steps.append(Step(round(at, 1), fault, lasting))
        at += lasting * (0.3 if chance.random() < OVERLAP else 1) + chance.uniform(0, min(gap, 3.0))
    raise AssertionError


def _without_end(hand: Sequence[str], deck: Sequence[str], chance: random.Random) -> Iterable[str]:
    yield from hand
    while True:
        yield chance.choice(deck)


def cut_lines(steps: Iterable[Step]) -> set[str]:
    """The lines that a schedule breaks, each of which needs a proxy."""
    return {step.subject for step in steps if step.verb in {"cut", "stall"}}
