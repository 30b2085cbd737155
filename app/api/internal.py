"""Routes for fronts only: never passed through, opened by the passkey (native-api N3)."""

from uuid import UUID

from flask import Blueprint, Response, request

from app.api.callers import read_caller
from app.api.errors import json_response
from app.api.services import services
from app.domain.errors import BadRequest, OnlyServiceAccountProxy
from app.domain.json_boundary import parse_worker_object

blueprint = Blueprint("internal", __name__)


@blueprint.post("/internal/release")
def release() -> Response:
    """Give back a job that was popped for a worker which had gone by then (details D16)."""
    uses = services()
    if not read_caller(request, uses.passkeys).from_front:
        raise OnlyServiceAccountProxy("This route is for fronts. Send the service passkey as Front-Authorization.")
    value = parse_worker_object(request.get_data(cache=False)).get("id")
    try:
        generation_id = UUID(str(value))
    except ValueError:
        raise BadRequest("id: must be a job's id.", param="id") from None
    return json_response({"released": uses.release_job(generation_id)})
