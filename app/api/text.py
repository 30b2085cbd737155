"""Text routes for existing clients: submit, status, cancel (native-api N2, wire reference 2.1 to 2.3)."""

from flask import Blueprint, Response, request

from app.api import contract_schemas, shapes
from app.api.callers import read_caller, request_id_in
from app.api.errors import json_response
from app.api.operations import Key, Operation, documented
from app.api.services import services
from app.domain import errors
from app.domain.json_boundary import parse_worker_object
from app.domain.text_request import parse_text_request
from app.services.operation_keys import Repeatable

blueprint = Blueprint("text", __name__)


@blueprint.post("/generate/text/async")
@documented(
    Operation(
        tag="text",
        key=Key.REQUIRED,
        body=contract_schemas.text_body(),
        answers={202: shapes.TextAccepted, 200: shapes.Quote},
        headers={"Operation-Key": "Makes the submit repeatable: the same key and body again get the first request."},
        refuses=(
            errors.ValidationFailed,
            errors.MissingPrompt,
            errors.CorruptPrompt,
            errors.TokenOverflow,
            errors.TooManyStopSequences,
            errors.ExcessiveStopSequence,
            errors.MissingFullSamplerOrder,
            errors.KudosUpfront,
            errors.SharedKeyEmpty,
            errors.SharedKeyInsufficientKudos,
            errors.WorkerNotFound,
            errors.OperationKeyMismatch,
            errors.TooManyPrompts,
            errors.AddressBanned,
        ),
    )
)
def submit() -> Response:
    """Take a text request; 202 with its id and its quote, 200 with the quote alone for a dry run.

    A `message` is there only when nobody online could take it: clients read a null as an error.
    """
    uses = services()
    calling = read_caller(request, uses.passkeys)
    api_key = calling.require_key()
    wanted = parse_text_request(parse_worker_object(request.get_data(cache=False)))
    with uses.countermeasures.screened(api_key, calling.address):
        if wanted.dry_run:
            return json_response({"kudos": uses.submit_text.quote(api_key, wanted)})
        repeatable = Repeatable(request.headers.get("Operation-Key") or None, calling.address)
        accepted = uses.submit_text(api_key, wanted, repeatable)
    body: dict[str, object] = {"id": str(accepted.id), "kudos": accepted.kudos}
    if accepted.message is not None and uses.countermeasures.warns:
        body["message"] = accepted.message
    return json_response(body, 202)


@blueprint.get("/generate/text/status/<request_id>")
@documented(Operation(tag="text", answers={200: shapes.TextStatus}, refuses=(errors.RequestNotFound,)))
def status(request_id: str) -> Response:
    """Answer with a text request's status; it takes no key."""
    return json_response(services().read_status.text(request_id_in(request_id)))


@blueprint.delete("/generate/text/status/<request_id>")
@documented(Operation(tag="text", answers={200: shapes.TextStatus}, refuses=(errors.RequestNotFound,)))
def cancel(request_id: str) -> Response:
    """Cancel a text request and answer with the status that it reached; it takes no key."""
    return json_response(services().cancel_request.text(request_id_in(request_id)))
