"""The one function that moves a row from state to state, under that row's lock (architecture A3).

Hot statements that move many things at once take their guard from `guard` too,
so the table of allowed moves in `app.domain.states` stays the only one.
"""

from typing import Any
from uuid import UUID

from sqlalchemy import select, update

from app.adapters.database import Transaction
from app.domain.states import GenerationState, IllegalMove, RequestState, generation_sources, request_sources
from app.models import Generation, HordeRequest

LIVES_ON = """CASE WHEN r.is_chat THEN r.expires_at
    ELSE greatest(r.expires_at, now() + make_interval(secs => :life)) END"""
"""When a request `r` that made progress expires: text `life` seconds from now, chat as it was (native-api N4)."""


def guard(target: RequestState | GenerationState) -> list[str]:
    """Return the states from which a row may move to `target`, for a statement's WHERE."""
    sources = request_sources(target) if isinstance(target, RequestState) else generation_sources(target)
    return sorted(sources)


def move_request(transaction: Transaction, request_id: UUID, target: RequestState, **values: Any) -> bool:
    """Move a request and set `values` with it.

    False when it is there already. Raises IllegalMove when the table has no such move.
    """
    return _move(transaction, HordeRequest, request_id, target, values)


def move_generation(transaction: Transaction, generation_id: UUID, target: GenerationState, **values: Any) -> bool:
    """Move a generation and set `values` with it.

    False when it is there already. Raises IllegalMove when the table has no such move.
    """
    return _move(transaction, Generation, generation_id, target, values)


def _move(
    transaction: Transaction,
    table: type[HordeRequest] | type[Generation],
    row_id: UUID,
    target: RequestState | GenerationState,
    values: dict[str, Any],
) -> bool:
    moved = transaction.execute(
        update(table)
        .where(table.id == row_id, table.state.in_(guard(target)))
        .values(state=target.value, **values)
        .returning(table.id)
        .execution_options(synchronize_session=False)
    ).scalar_one_or_none()
    if moved is not None:
        return True
    state = transaction.execute(select(table.state).where(table.id == row_id)).scalar_one_or_none()
    if state == target.value:
        return False
    raise IllegalMove(f"{table.__tablename__} {row_id}: {state} -> {target.value}")
