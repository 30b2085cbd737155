"""Routes for kudos and the keys that spend them (native-api N2, wire reference 2.7)."""

from uuid import UUID

from flask import Blueprint, Response, request

from app.api import contract_schemas, shapes
from app.api.callers import require_key
from app.api.errors import json_response
from app.api.operations import Key, Operation, documented
from app.api.services import services
from app.domain import errors
from app.domain.errors import InvalidApiKey
from app.domain.json_boundary import parse_object
from app.domain.shared_key_terms import parse_shared_key

blueprint = Blueprint("kudos", __name__)


@blueprint.post("/kudos/transfer")
@documented(
    Operation(
        tag="accounts",
        key=Key.REQUIRED,
        body=contract_schemas.transfer_body(),
        headers={"Idempotency-Key": "The same key and body again give nothing."},
        answers={200: shapes.Transferred},
        refuses=(
            errors.InvalidKudosTransferAmount,
            errors.NegativeKudosTransfer,
            errors.KudosTransferNotEnough,
            errors.InvalidTargetUsername,
            errors.KudosTransferToAnon,
            errors.KudosTransferFromAnon,
            errors.KudosTransferToSelf,
            errors.SourceAccountFlagged,
            errors.TargetAccountFlagged,
            errors.EducationCannotSendKudos,
            errors.TransferDeletedUser,
            errors.TransferSharedKeyExpired,
            errors.TooFastKudosTransfers,
            errors.IdempotencyKeyConflict,
        ),
    )
)
def transfer() -> Response:
    """Give kudos to another account; the same Idempotency-Key and body again give nothing."""
    uses = services()
    api_key = require_key(request)
    body = parse_object(request.get_data(cache=False))
    given = uses.transfer_kudos(
        api_key, body.get("username"), body.get("amount"), request.headers.get("Idempotency-Key")
    )
    return json_response({"transferred": given})


@blueprint.put("/sharedkeys")
@documented(
    Operation(
        tag="accounts",
        key=Key.REQUIRED,
        body=contract_schemas.shared_key_body(),
        answers={200: shapes.SharedKey},
        refuses=(errors.AnonymousOwnsNoKeys,),
    )
)
def create_shared_key() -> Response:
    """Make a key with limits that others may ask with."""
    uses = services()
    api_key = require_key(request)
    terms = parse_shared_key(parse_object(request.get_data(cache=False) or b"{}"))
    return json_response(uses.shared_keys.create(api_key, terms))


@blueprint.get("/sharedkeys/<shared_id>")
@documented(Operation(tag="accounts", answers={200: shapes.SharedKey}, refuses=(errors.InvalidApiKey,)))
def read_shared_key(shared_id: str) -> Response:
    """Answer with a shared key; its id is all that one needs to read it."""
    return json_response(services().shared_keys.read(_id(shared_id)))


@blueprint.patch("/sharedkeys/<shared_id>")
@documented(
    Operation(
        tag="accounts",
        key=Key.REQUIRED,
        body=contract_schemas.shared_key_body(),
        answers={200: shapes.SharedKey},
        refuses=(errors.NotOwner, errors.NoSharedKeyModSelected),
    )
)
def change_shared_key(shared_id: str) -> Response:
    """Change a shared key of the caller's."""
    uses = services()
    api_key = require_key(request)
    terms = parse_shared_key(parse_object(request.get_data(cache=False)))
    return json_response(uses.shared_keys.change(api_key, _id(shared_id), terms))


@blueprint.delete("/sharedkeys/<shared_id>")
@documented(Operation(tag="accounts", key=Key.REQUIRED, answers={200: shapes.Done}, refuses=(errors.NotOwner,)))
def delete_shared_key(shared_id: str) -> Response:
    """Make a shared key of the caller's useless."""
    uses = services()
    api_key = require_key(request)
    uses.shared_keys.delete(api_key, _id(shared_id))
    return json_response({"message": "OK"})


def _id(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise InvalidApiKey("No shared key has this id.", param="sharedkey") from None
