"""Where a request stands, as the native API says, and what follows for the client (front F1, F5, details D4).

Pure: the status object comes in, a decision goes out.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.domain.states import ENDED_REQUESTS, RequestState
from front import errors
from front.errors import Problem


@dataclass(frozen=True, slots=True)
class Standing:
    """The parts of a status object that decide something."""

    state: RequestState
    processing: int
    is_possible: bool
    eligible_threads: int
    wait_seconds: float
    has_queue_info: bool
    declaration_gap: Mapping[str, Any] | None
    limits_gap: Mapping[str, Any] | None
    fault: Mapping[str, Any] | None
    generation: Mapping[str, Any] | None
    kudos: float
    charge_basis: str | None

    @classmethod
    def read(cls, status: Mapping[str, Any]) -> "Standing":
        """Read a status object.

        Raises ValueError, KeyError or TypeError when it is not one.
        """
        return cls(
            state=RequestState(status["state"]),
            processing=int(status["processing"]),
            is_possible=bool(status["is_possible"]),
            eligible_threads=int(status["eligible_threads"]),
            wait_seconds=float(status["wait_time"]),
            has_queue_info=status["queue_info_at"] is not None,
            declaration_gap=_object(status["declaration_gap"]),
            limits_gap=_object(status["limits_gap"]),
            fault=_object(status["fault"]),
            generation=_delivered(status["generations"]),
            kudos=status["kudos"],
            charge_basis=status.get("charge_basis"),
        )

    @property
    def has_ended(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ENDED_REQUESTS

    @property
    def has_reply(self) -> bool:
        """Whether the reply is there."""
        return self.state is RequestState.DONE and self.generation is not None

    @property
    def waits_in_vain(self) -> bool:
        """Whether nobody works on it and nobody online could."""
        return not self.has_ended and self.processing == 0 and not self.is_possible


def first_refusal(standing: Standing, *, fail_fast: bool, budget_seconds: float) -> Problem | None:
    """What the first status refuses, in order: declaration gap, limits gap, `fail_fast`."""
    if standing.declaration_gap is not None:
        return errors.declaration_gap(standing.declaration_gap)
    if standing.limits_gap is not None:
        return errors.limits_gap(standing.limits_gap)
    if not fail_fast or standing.has_ended:
        return None
    if standing.eligible_threads == 0:
        return errors.queue_unavailable(None)
    if standing.has_queue_info and standing.wait_seconds > budget_seconds:
        return errors.queue_unavailable(standing.wait_seconds)
    return None


def needs_queue_info(standing: Standing) -> bool:
    """Whether `fail_fast` has to look again: threads exist, and the queue's figures do not know the request yet."""
    return not standing.has_ended and standing.eligible_threads > 0 and not standing.has_queue_info


def failure(standing: Standing, deadline_seconds: float) -> Problem | None:
    """Why an ended request has no reply; None for one that has, or that goes on."""
    if not standing.has_ended or standing.has_reply:
        return None
    if standing.state is RequestState.FAULTED:
        return errors.faulted(standing.fault)
    if standing.state is RequestState.EXPIRED:
        return errors.deadline_exceeded(deadline_seconds)
    if standing.state is RequestState.CANCELLED:
        return errors.no_generation("it was cancelled")
    return errors.no_generation("no worker delivered one")


def _object(value: object) -> Mapping[str, Any] | None:
    return value if isinstance(value, dict) else None


def _delivered(generations: object) -> Mapping[str, Any] | None:
    if not isinstance(generations, list):
        raise TypeError("generations must be a list")
    return next((one for one in generations if isinstance(one, dict) and one.get("state", "ok") == "ok"), None)
