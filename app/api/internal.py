"""Routes for fronts only: never passed through, opened by the passkey (native-api N3)."""

from uuid import UUID

from flask import Blueprint, Response, request

from app.api.callers import read_caller
from app.api.errors import json_response
from app.api.services import services
from app.domain.errors import BadRequest, OnlyServiceAccountProxy
from app.domain.json_boundary import parse_worker_object
from app.services.request_status import LARGEST_BATCH

blueprint = Blueprint("internal", __name__)


@blueprint.post("/internal/release")
def release() -> Response:
    """Give back a job that was popped for a worker which had gone by then (details D16)."""
    value = _front_body().get("id")
    try:
        generation_id = UUID(str(value))
    except ValueError:
        raise BadRequest("id: must be a job's id.", param="id") from None
    return json_response({"released": services().release_job(generation_id)})


@blueprint.post("/internal/statuses")
def statuses() -> Response:
    """Answer with those of up to 200 chat statuses that changed since the version that the front saw (details D12)."""
    seen = _front_body().get("seen")
    if not isinstance(seen, dict) or len(seen) > LARGEST_BATCH:
        raise BadRequest(f"seen: must be an object of at most {LARGEST_BATCH} ids and versions.", param="seen")
    try:
        versions = {UUID(key): version if isinstance(version, str) else None for key, version in seen.items()}
    except ValueError:
        raise BadRequest("seen: its keys must be ids of requests.", param="seen") from None
    return json_response({"statuses": services().read_status.changed(versions)})


@blueprint.post("/internal/cancels")
def cancels() -> Response:
    """End those of up to 200 chat requests that no worker has begun; the others are cancelled each by itself."""
    ids = _front_body().get("ids")
    if not isinstance(ids, list) or len(ids) > LARGEST_BATCH:
        raise BadRequest(f"ids: must be a list of at most {LARGEST_BATCH} ids.", param="ids")
    try:
        request_ids = [UUID(str(each)) for each in ids]
    except ValueError:
        raise BadRequest("ids: must be ids of requests.", param="ids") from None
    cancelled = services().cancel_request.unstarted(request_ids)
    return json_response({"cancelled": [str(each) for each in cancelled]})


def _front_body() -> dict[str, object]:
    """Return the body of a front's call.

    Raises OnlyServiceAccountProxy for anybody else's.
    """
    if not read_caller(request, services().passkeys).from_front:
        raise OnlyServiceAccountProxy("This route is for fronts. Send the service passkey as Front-Authorization.")
    return parse_worker_object(request.get_data(cache=False))
