"""Chat routes for requesters: submit, status, cancel, models (native-api N1)."""

from flask import Blueprint, Response, request

from app.api import shapes
from app.api.callers import deadline_seconds, proposed_id, read_caller, request_id_in
from app.api.errors import json_response
from app.api.operations import Key, Operation, documented
from app.api.services import services
from app.domain import errors
from app.domain.contract import Face, parse_chat_request
from app.domain.contract.messages import image_count
from app.domain.contract.openapi_schema import chat_request_schema
from app.domain.errors import PayloadTooLarge
from app.domain.json_boundary import parse_object, parse_worker_object
from app.domain.progress import Relayed, parse_relayed
from app.services.submit_request import Submission

blueprint = Blueprint("chat", __name__)

_OF_ONE_REQUEST = Operation(
    tag="chat", key=Key.OPTIONAL, answers={200: shapes.ChatStatus}, refuses=(errors.RequestNotFound,)
)


@blueprint.post("/generate/chat/async")
@documented(
    Operation(
        tag="chat",
        key=Key.REQUIRED,
        body=chat_request_schema(Face.NATIVE),
        answers={202: shapes.ChatAccepted, 200: shapes.ChatAccepted | shapes.Quote, 404: shapes.Refusal},
        headers={"Operation-Key": "Makes the submit repeatable; wins over operation_key."},
        refuses=(
            errors.ContractRefusal,
            errors.CorruptPrompt,
            errors.KudosCapExceeded,
            errors.KudosUpfront,
            errors.SharedKeyEmpty,
            errors.SharedKeyInsufficientKudos,
            errors.OperationKeyMismatch,
            errors.TooManyPrompts,
            errors.AddressBanned,
            errors.NoEligibleWorker,
        ),
    )
)
def submit() -> Response:
    """Take a chat request; 202 with its id, its quote and its status, 200 for a replay or a dry run."""
    uses = services()
    calling = read_caller(request, uses.passkeys)
    request.max_content_length = max(uses.body_limit_bytes, uses.image_body_limit_bytes)
    body_bytes = request.get_data(cache=False)
    chat = parse_chat_request(parse_object(body_bytes), Face.NATIVE)
    if len(body_bytes) > uses.body_limit_bytes and not image_count(chat.messages):
        raise PayloadTooLarge(f"A body without images may have {uses.body_limit_bytes} bytes.")
    submission = Submission(
        api_key=calling.require_key(),
        chat=chat,
        operation_key=request.headers.get("Operation-Key") or chat.operation_key,
        address=calling.address,
        proposed_id=proposed_id(request, calling),
        deadline_seconds=deadline_seconds(request),
    )
    with uses.countermeasures.screened(submission.api_key, submission.address):
        if chat.dry_run:
            return json_response({"kudos": uses.submit_request.quote(submission)})
        accepted = uses.submit_request(submission)
    body = {"id": str(accepted.id), "kudos": accepted.kudos, "status": accepted.status}
    if accepted.warnings:
        body["warnings"] = list(accepted.warnings)
    return json_response(body, 200 if accepted.replayed else 202)


@blueprint.get("/generate/chat/status/<request_id>")
@documented(_OF_ONE_REQUEST)
def status(request_id: str) -> Response:
    """Answer with a request's status."""
    uses = services()
    calling = read_caller(request, uses.passkeys)
    found = uses.read_status(request_id_in(request_id), api_key=calling.api_key, trusted_front=calling.from_front)
    return json_response(found)


@blueprint.delete("/generate/chat/status/<request_id>")
@documented(_OF_ONE_REQUEST)
def cancel(request_id: str) -> Response:
    """Cancel a request and answer with the status that it reached; a second cancel changes nothing."""
    uses = services()
    calling = read_caller(request, uses.passkeys)
    found = uses.cancel_request(
        request_id_in(request_id),
        api_key=calling.api_key,
        trusted_front=calling.from_front,
        relayed=_relayed() if calling.from_front else None,
    )
    return json_response(found)


def _relayed() -> Relayed | None:
    """Return what a front says in its cancel that it had relayed; any other caller's body is not read."""
    request.max_content_length = services().reply_limit_bytes
    body = request.get_data(cache=False)
    return parse_relayed(parse_worker_object(body)) if body else None


@blueprint.get("/generate/chat/models")
@documented(Operation(tag="chat", answers={200: list[shapes.ChatModel]}))
def models() -> Response:
    """List the chat models that are online."""
    return json_response(services().list_models())
