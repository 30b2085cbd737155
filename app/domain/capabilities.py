"""Whether a worker's declaration covers a request or a class of requests, and why not (contract C4, details D4)."""

from collections.abc import Iterable
from dataclasses import dataclass

from app.domain.declaration import Declaration, Feature, Guarantee, Limit, Transport, parse_declaration
from app.domain.requirements import (
    TEMPERATURE_STEP,
    Requirements,
    class_of,
    required_chat_features,
    requirements_of,
)

__all__ = [
    "Availability",
    "Coverage",
    "Declaration",
    "Feature",
    "Guarantee",
    "Limit",
    "LimitGap",
    "Requirements",
    "Transport",
    "class_of",
    "covers",
    "covers_whole_class",
    "gaps",
    "largest_limit",
    "may_cover",
    "parse_declaration",
    "required_chat_features",
    "requirements_of",
]

IMAGE_TRANSPORTS = "image_transports"
"""Name under which a missing image transport is reported."""

_PER_IMAGE_TRANSPORTS = frozenset({Transport.URL, Transport.BASE64})


@dataclass(frozen=True, slots=True)
class LimitGap:
    """A limit that is smaller than what was asked."""

    limit: str
    asked: float
    largest: float

    def shown(self) -> dict[str, object]:
        """The gap on the wire (details D4), whole numbers as such."""
        return {"limit": self.limit, "asked": _plain(self.asked), "largest": _plain(self.largest)}


@dataclass(frozen=True, slots=True)
class Coverage:
    """How one declaration meets one request's requirements."""

    model: bool
    missing: tuple[str, ...] = ()
    limit: LimitGap | None = None

    @property
    def complete(self) -> bool:
        """Whether the worker can serve the request."""
        return self.model and not self.missing and self.limit is None


@dataclass(frozen=True, slots=True, kw_only=True)
class Availability:
    """What the online workers together mean for one request (details D4)."""

    online: bool
    declaration_gap: dict[str, object] | None = None
    limits_gap: dict[str, object] | None = None
    eligible_workers: int = 0
    eligible_threads: int = 0


def serves_model(declaration: Declaration, requirements: Requirements) -> bool:
    """Whether the worker takes this kind of job for one of the models.

    A chat job matches the loaded model; a text job any of the worker's names, and a text
    request that names no model matches every one (details D1; wire reference, fact 12).
    """
    if requirements.is_chat:
        return declaration.chat_jobs and declaration.model_id in requirements.models
    if not declaration.prompt_jobs:
        return False
    return not requirements.models or not set(requirements.models).isdisjoint(declaration.models)


def covers(declaration: Declaration, requirements: Requirements) -> Coverage:
    """How a declaration meets exact requirements; the limit is the first one that is too small."""
    return Coverage(
        model=serves_model(declaration, requirements),
        missing=missing_names(declaration, requirements),
        limit=next(iter(limit_gaps(declaration, requirements)), None),
    )


def missing_names(declaration: Declaration, requirements: Requirements) -> tuple[str, ...]:
    """Features, guarantees and the image transport that the request needs and the worker does not declare."""
    missing = [name for name in requirements.features if name not in declaration.features]
    if requirements.images and _PER_IMAGE_TRANSPORTS.isdisjoint(declaration.image_transports):
        missing.append(IMAGE_TRANSPORTS)
    return tuple(missing)


def worker_limit(declaration: Declaration, requirements: Requirements, limit: Limit) -> float | None:
    """The worker's limit for this kind of job; None when there is none."""
    return declaration.limit(limit) if requirements.is_chat else declaration.prompt_limit(limit)


def limit_gaps(declaration: Declaration, requirements: Requirements) -> tuple[LimitGap, ...]:
    """Every limit of the worker that is smaller than what the request asks."""
    return tuple(
        LimitGap(limit, asked, largest)
        for limit, asked in requirements.asked()
        if (largest := worker_limit(declaration, requirements, limit)) is not None and largest < asked
    )


def gaps(declarations: Iterable[Declaration], requirements: Requirements) -> Availability:
    """Why no online worker covers the request, or how many do (details D4).

    A declaration gap comes first: no single worker of the model has all features, guarantees
    and transports. Then a limits gap: some do, and each of them is too small.
    """
    serving = [declaration for declaration in declarations if serves_model(declaration, requirements)]
    if not serving:
        return Availability(online=False)
    capable = [declaration for declaration in serving if not missing_names(declaration, requirements)]
    if not capable:
        return Availability(online=True, declaration_gap=_declaration_gap(serving, requirements))
    eligible = [declaration for declaration in capable if not limit_gaps(declaration, requirements)]
    if not eligible:
        return Availability(online=True, limits_gap=_limits_gap(capable, requirements).shown())
    return Availability(
        online=True,
        eligible_workers=len(eligible),
        eligible_threads=sum(declaration.threads for declaration in eligible),
    )


def largest_limit(declarations: Iterable[Declaration], requirements: Requirements, limit: Limit) -> int | None:
    """The largest value of a limit among the workers that have the model and the features.

    None when there is no such worker. A request that asks for more output is lowered to it, and
    one that may be shortened is shortened to it (details D1).
    """
    known = [
        value
        for declaration in declarations
        if serves_model(declaration, requirements) and not missing_names(declaration, requirements)
        if (value := worker_limit(declaration, requirements, limit)) is not None
    ]
    return int(max(known)) if known else None


def _declaration_gap(serving: list[Declaration], requirements: Requirements) -> dict[str, object]:
    """The names to blame, with how many workers declare each.

    Where some name is declared by nobody, those alone; otherwise every name that some worker lacks.
    """
    lacking: dict[str, int] = {}
    for declaration in serving:
        for name in missing_names(declaration, requirements):
            lacking[name] = lacking.get(name, 0) + 1
    workers = {name: len(serving) - count for name, count in sorted(lacking.items())}
    nowhere = {name: count for name, count in workers.items() if count == 0}
    return {"missing": [{"name": name, "workers": count} for name, count in (nowhere or workers).items()]}


def _limits_gap(capable: list[Declaration], requirements: Requirements) -> LimitGap:
    """The limit to blame: one that no worker reaches, with the largest there is.

    Where each limit alone is reached by some worker, the first gap of the worker with the fewest.
    """
    found = [limit_gaps(declaration, requirements) for declaration in capable]
    for limit, asked in requirements.asked():
        reached = [gap.largest for worker in found for gap in worker if gap.limit == limit]
        if len(reached) == len(capable):
            return LimitGap(limit, asked, max(reached))
    return min(found, key=len)[0]


def _plain(number: float) -> float:
    return int(number) if number == int(number) else number


def may_cover(declaration: Declaration, klass: Requirements) -> bool:
    """Whether the worker could serve some request of the class (details D11).

    A class holds the upper ends of its sizes; a worker whose limit ends inside a bucket still
    serves the smaller requests, whose exact sizes `covers` then decides.
    """
    if not serves_model(declaration, klass) or missing_names(declaration, klass):
        return False
    return too_small(declaration, klass) is None


def too_small(declaration: Declaration, klass: Requirements) -> str | None:
    """The limit of the worker that is below even the smallest request of the class; None when none is."""
    for limit, upper in klass.asked():
        largest = worker_limit(declaration, klass, limit)
        if largest is not None and _below_bucket(limit, largest, upper):
            return limit.value
    return None


def covers_whole_class(declaration: Declaration, klass: Requirements) -> bool:
    """Whether no request of a class that the worker may cover is too large for it (details D11)."""
    return not limit_gaps(declaration, klass)


def _below_bucket(limit: Limit, largest: float, upper: float) -> bool:
    """Whether a worker's limit is below the smallest size of the bucket that ends at `upper`."""
    if limit == Limit.TOOLS_MAX_TEMPERATURE:
        return largest <= upper - TEMPERATURE_STEP if upper else False
    return largest < upper // 2 + 1
