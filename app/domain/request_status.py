"""The status of a chat request, as one shape: in the 202, in every read, after a cancel (native-api N1, D4, D12)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from app.domain.capabilities import Availability
from app.domain.pricing import kudos
from app.domain.queue_figures import Place
from app.domain.states import ENDED_REQUESTS, RequestState

CANCELLED_FAULT = "cancelled"
"""Why a streamed generation ended whose client cancelled it; it is no fault of anybody."""

CHARGE_BASIS = "output_estimate"
"""How every charge is worked out (native-api N5)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestFacts:
    """What the row says about a request."""

    id: str
    state: RequestState
    waiting: int
    processing: int
    finished: int
    restarted: int
    fault: Mapping[str, Any] | None = None
    charged: int = 0
    generations: list[dict[str, Any]] = field(default_factory=list)


def is_possible(facts: RequestFacts, availability: Availability) -> bool:
    """Whether somebody works on the request, or an online worker could."""
    return facts.processing > 0 or availability.eligible_workers > 0


def status_object(facts: RequestFacts, availability: Availability, place: Place) -> dict[str, Any]:
    """Return the status of a request.

    `queue_info_at` stays null until a refresh of the queue's figures has seen the
    request. An ended request reports no gap.
    """
    ended = facts.state in ENDED_REQUESTS
    return {
        "id": facts.id,
        "state": facts.state.value,
        "done": ended,
        "faulted": facts.state in {RequestState.FAULTED, RequestState.EXPIRED},
        "finished": facts.finished,
        "processing": facts.processing,
        "restarted": facts.restarted,
        "waiting": facts.waiting,
        "queue_position": place.position,
        "wait_time": place.wait_seconds,
        "queue_info_at": None if place.known_at is None else round(place.known_at, 3),
        "is_possible": not ended and is_possible(facts, availability),
        "eligible_workers": availability.eligible_workers,
        "eligible_threads": availability.eligible_threads,
        "declaration_gap": None if ended else availability.declaration_gap,
        "limits_gap": None if ended else availability.limits_gap,
        "fault": None if facts.fault is None else dict(facts.fault),
        "kudos": kudos(facts.charged),
        "charge_basis": CHARGE_BASIS,
        "generations": facts.generations,
    }
