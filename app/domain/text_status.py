"""The status of a text request in the shape that existing clients read (wire reference 2.2)."""

from typing import Any

from app.domain.capabilities import Availability
from app.domain.pricing import kudos
from app.domain.queue_figures import Place
from app.domain.request_status import RequestFacts, is_possible
from app.domain.states import ENDED_REQUESTS, RequestState


def text_status_object(facts: RequestFacts, availability: Availability, place: Place) -> dict[str, Any]:
    """Return the status: every key always there, every number whole.

    `done` comes with the results or with `faulted`, as clients treat it without either as a
    failure; an expired request counts as faulted. A cancelled one is done: nobody waits for it.
    """
    ended = facts.state in ENDED_REQUESTS
    return {
        "generations": facts.generations,
        "finished": facts.finished,
        "processing": facts.processing,
        "restarted": facts.restarted,
        "waiting": facts.waiting,
        "done": ended,
        "faulted": facts.state in {RequestState.FAULTED, RequestState.EXPIRED},
        "wait_time": place.wait_seconds,
        "queue_position": place.position if facts.waiting else 0,
        "kudos": round(kudos(facts.charged)),
        "is_possible": ended or is_possible(facts, availability),
    }
