"""Which workers a request may be given to, beyond what they declare (native-api N3, wire reference 4.9).

`capabilities` judges a declaration. This module adds what a worker does not say of itself:
who it is, whether its owner is trusted, which backend it runs and how fast it was measured.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from app.domain.capabilities import (
    Availability,
    gaps,
    limit_gaps,
    missing_names,
    serves_model,
    too_small,
)
from app.domain.declaration import Declaration
from app.domain.lifetimes import SLOWEST_TOKENS_PER_SECOND
from app.domain.model_sizes import billions
from app.domain.refused_words import refuses
from app.domain.requirements import Requirements

VALIDATED_BACKENDS = frozenset(
    {
        "AI Horde Worker",
        "AI Horde Worker~aphrodite~kai",
        "AI Horde Worker~aphrodite~oai",
        "KoboldCppEmbedWorker",
        "TabbyAPI",
    }
)
"""Bridges whose backends are known (wire reference 4.5); their agent has three parts."""

NEW_WORKER_TOKENS_PER_SECOND = 1.0
"""What a worker counts as until it was measured, where slow workers are unwanted (wire reference 4.9)."""

_SPEEDS_BY_SIZE = ((20.0, 3.0), (13.0, 4.0), (0.0, 5.0))
"""Smallest tokens a second of a worker that is not slow, from models of this many billions on."""

POSSIBLE_TOKENS_PER_SECOND = 2.0
"""From this speed on a request that wants no slow worker counts as possible."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A worker as the horde knows it. `speeds` are measured tokens a second, by model."""

    id: str
    declaration: Declaration
    trusted: bool = False
    speeds: Mapping[str, float] = field(default_factory=dict)

    @property
    def validated(self) -> bool:
        """Whether its bridge is one whose backends are known."""
        parts = self.declaration.bridge_agent.split(":", 2)
        return len(parts) == 3 and parts[0] in VALIDATED_BACKENDS


def obstacle(candidate: Candidate, klass: Requirements) -> str | None:
    """Why the worker gets no request of this class, by the wire's name; None when it may get one."""
    return _unselected(candidate, klass, possible=False) or _uncovered(candidate.declaration, klass)


def eligible(candidates: Iterable[Candidate], requirements: Requirements) -> tuple[Candidate, ...]:
    """The workers that can serve exactly this request."""
    return tuple(
        candidate
        for candidate in candidates
        if serves_model(candidate.declaration, requirements)
        and not missing_names(candidate.declaration, requirements)
        and not limit_gaps(candidate.declaration, requirements)
        and _unselected(candidate, requirements, possible=True) is None
    )


def availability(
    candidates: Iterable[Candidate], requirements: Requirements
) -> tuple[Availability, tuple[Candidate, ...]]:
    """What the online workers mean for a request, and those that can serve it.

    A selection that leaves nobody is no gap: workers that fit may still come (details D4, row 4).
    """
    known = tuple(candidates)
    found = gaps((candidate.declaration for candidate in known), requirements)
    if not found.eligible_workers:
        return found, ()
    able = eligible(known, requirements)
    threads = sum(candidate.declaration.threads for candidate in able)
    return replace(found, eligible_workers=len(able), eligible_threads=threads), able


def throughput(able: Iterable[Candidate], requirements: Requirements) -> float:
    """Tokens a second that these workers write together for such requests.

    A worker that was not measured counts as the mean of those that were, or else as a slow one.
    """
    measured = [(candidate.declaration.threads, speed_for(candidate, requirements)) for candidate in able]
    known = [speed for _, speed in measured if speed is not None]
    usual = sum(known) / len(known) if known else float(SLOWEST_TOKENS_PER_SECOND)
    return sum(threads * (usual if speed is None else speed) for threads, speed in measured)


def speed_for(candidate: Candidate, requirements: Requirements) -> float | None:
    """Measured tokens a second of a worker for the models of a request; None when it was not measured."""
    declared = candidate.declaration
    serving = {declared.model_id} if requirements.is_chat else set(declared.models)
    if requirements.models:
        serving &= set(requirements.models)
    speeds = [speed for model, speed in candidate.speeds.items() if model in serving]
    return sum(speeds) / len(speeds) if speeds else None


def _unselected(candidate: Candidate, requirements: Requirements, *, possible: bool) -> str | None:
    """Why the requester's selection, or the worker's own, leaves this worker out."""
    if requirements.workers and (candidate.id in requirements.workers) == requirements.worker_blacklist:
        return "worker_id"
    if requirements.trusted_workers and not candidate.trusted:
        return "untrusted"
    if requirements.validated_workers and not candidate.validated:
        return "bridge_version"
    if requirements.nsfw and not candidate.declaration.nsfw:
        return "nsfw"
    if refuses(candidate.declaration.blacklist, requirements.refused_words):
        return "blacklist"
    if requirements.softprompt is not None and requirements.softprompt not in candidate.declaration.softprompts:
        return "matching_softprompt"
    if not requirements.slow_workers and _too_slow(candidate, requirements, possible=possible):
        return "performance"
    return None


def _too_slow(candidate: Candidate, requirements: Requirements, *, possible: bool) -> bool:
    speed = speed_for(candidate, requirements) or NEW_WORKER_TOKENS_PER_SECOND
    if possible:
        return speed < POSSIBLE_TOKENS_PER_SECOND
    size = max((billions(model) for model in requirements.models), default=0.0)
    return speed < next(least for floor, least in _SPEEDS_BY_SIZE if size >= floor)


def _uncovered(declaration: Declaration, klass: Requirements) -> str | None:
    if not serves_model(declaration, klass):
        return "models"
    missing = missing_names(declaration, klass)
    return missing[0] if missing else too_small(declaration, klass)
