"""Routes that say how the horde is doing, and what it delivered (native-api N2, wire reference 2.8)."""

from flask import Blueprint, Response, request

from app.api import bodies, shapes
from app.api.callers import read_caller, require_key
from app.api.errors import json_response
from app.api.operations import Key, Operation, documented, read_body, read_query
from app.api.services import services
from app.domain import errors
from app.domain.modes import Mode
from app.domain.worker_profile import WORKER_TYPE
from app.services.performance import ModelFilter

TAG = "status"

blueprint = Blueprint("status", __name__)


@blueprint.get("/status/heartbeat")
@documented(Operation(tag=TAG, answers={200: shapes.Heartbeat}))
def heartbeat() -> Response:
    """Say that the API answers: 200 whatever else is out of order."""
    return json_response(services().performance.heartbeat())


@blueprint.get("/status/performance")
@documented(Operation(tag=TAG, answers={200: shapes.PerformanceFigures}))
def performance() -> Response:
    """Show what waits, who serves, and the tokens of the last minute; a few seconds old at most."""
    return json_response(services().performance.figures())


@blueprint.get("/status/models")
@documented(Operation(tag=TAG, query=bodies.ModelsQuery, answers={200: list[shapes.ModelStatus]}))
def models() -> Response:
    """List the models that somebody serves or waits for."""
    wanted = read_query(bodies.ModelsQuery)
    if wanted.type != WORKER_TYPE:
        return json_response([])
    chosen = ModelFilter(min_count=wanted.min_count, max_count=wanted.max_count, state=wanted.model_state)
    return json_response(services().performance.models(chosen))


@blueprint.get("/status/models/<path:name>")
@documented(Operation(tag=TAG, answers={200: list[shapes.ModelStatus]}))
def model(name: str) -> Response:
    """Show one model, as the one element of a list; zeros for one that nobody serves."""
    return json_response([services().performance.model(name)])


@blueprint.get("/status/modes")
@documented(Operation(tag=TAG, key=Key.OPTIONAL, answers={200: shapes.Modes}))
def modes() -> Response:
    """Show the horde's modes; raid mode to moderators alone."""
    uses = services()
    return json_response(uses.modes.read(read_caller(request, uses.passkeys).api_key))


@blueprint.put("/status/modes")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.ModeChanges,
        answers={200: shapes.Modes},
        refuses=(errors.NotModerator, errors.NoHordeModSelected),
    )
)
def set_modes() -> Response:
    """Set modes, and answer with those that were named. For moderators."""
    uses = services()
    api_key = require_key(request)
    given = read_body(bodies.ModeChanges)
    wanted = {Mode.MAINTENANCE: given.maintenance, Mode.INVITE_ONLY: given.invite_only, Mode.RAID: given.raid}
    named = {mode: is_on for mode, is_on in wanted.items() if is_on is not None}
    return json_response(uses.modes.change(api_key, named))


@blueprint.get("/stats/text/totals")
@documented(Operation(tag=TAG, answers={200: shapes.Totals}))
def totals() -> Response:
    """Show what was delivered in the last minute, hour, day, thirty days, and ever."""
    return json_response(services().statistics.totals())


@blueprint.get("/stats/text/models")
@documented(Operation(tag=TAG, answers={200: shapes.ModelTotals}))
def model_totals() -> Response:
    """Show how many generations each model delivered in the last day, in thirty days, and ever."""
    return json_response(services().statistics.models())
