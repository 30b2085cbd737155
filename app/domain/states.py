"""States of requests and generations, and the only table of allowed moves (architecture A3).

A repeated move is a no-op; a move that the table does not hold is an error. The
database function that makes a move reads its guard from here. A text reply needs no
verification, so it goes from `leased` (or, late, from `timed_out`) to `verified` at once.
"""

from enum import StrEnum


class RequestState(StrEnum):
    """Where a requester's request stands."""

    PREPARING = "preparing"
    QUEUED = "queued"
    PROCESSING = "processing"
    DONE = "done"
    FAULTED = "faulted"
    CANCELLED = "cancelled"
    EXPIRED = "expired"


class GenerationState(StrEnum):
    """Where one worker's attempt at a request stands."""

    LEASED = "leased"
    SUBMITTED = "submitted"
    VERIFIED = "verified"
    SETTLED = "settled"
    REFUSED = "refused"
    FAULTED = "faulted"
    CANCELLED = "cancelled"
    TIMED_OUT = "timed_out"


class IllegalMove(Exception):
    """A move that the table does not allow: a defect of the caller, never of the user."""


REQUEST_MOVES: dict[RequestState, frozenset[RequestState]] = {
    RequestState.PREPARING: frozenset(
        {RequestState.QUEUED, RequestState.FAULTED, RequestState.CANCELLED, RequestState.EXPIRED}
    ),
    RequestState.QUEUED: frozenset(
        {
            RequestState.PROCESSING,
            RequestState.DONE,
            RequestState.FAULTED,
            RequestState.CANCELLED,
            RequestState.EXPIRED,
        }
    ),
    RequestState.PROCESSING: frozenset(
        {
            RequestState.QUEUED,
            RequestState.DONE,
            RequestState.FAULTED,
            RequestState.CANCELLED,
            RequestState.EXPIRED,
        }
    ),
    RequestState.DONE: frozenset(),
    RequestState.FAULTED: frozenset(),
    RequestState.CANCELLED: frozenset(),
    RequestState.EXPIRED: frozenset(),
}

GENERATION_MOVES: dict[GenerationState, frozenset[GenerationState]] = {
    GenerationState.LEASED: frozenset(
        {
            GenerationState.SUBMITTED,
            GenerationState.VERIFIED,
            GenerationState.FAULTED,
            GenerationState.CANCELLED,
            GenerationState.TIMED_OUT,
        }
    ),
    GenerationState.SUBMITTED: frozenset({GenerationState.VERIFIED, GenerationState.REFUSED, GenerationState.FAULTED}),
    GenerationState.VERIFIED: frozenset({GenerationState.SETTLED}),
    GenerationState.CANCELLED: frozenset({GenerationState.SETTLED}),
    GenerationState.TIMED_OUT: frozenset({GenerationState.SUBMITTED, GenerationState.VERIFIED}),
    GenerationState.SETTLED: frozenset(),
    GenerationState.REFUSED: frozenset(),
    GenerationState.FAULTED: frozenset(),
}

OPEN_REQUESTS = frozenset({RequestState.PREPARING, RequestState.QUEUED, RequestState.PROCESSING})
"""Requests that may still change."""

ENDED_REQUESTS = frozenset(RequestState) - OPEN_REQUESTS
"""Requests in a terminal state."""


def request_sources(target: RequestState) -> frozenset[RequestState]:
    """States from which a request may move to `target`."""
    return frozenset(source for source, targets in REQUEST_MOVES.items() if target in targets)


def generation_sources(target: GenerationState) -> frozenset[GenerationState]:
    """States from which a generation may move to `target`."""
    return frozenset(source for source, targets in GENERATION_MOVES.items() if target in targets)
