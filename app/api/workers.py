"""Routes that show workers and let their owners edit them (native-api N2, wire reference 2.6)."""

from uuid import UUID

from flask import Blueprint, Response, request

from app.api import bodies, shapes
from app.api.callers import read_caller, require_key
from app.api.errors import json_response
from app.api.operations import Key, Operation, documented, read_body, read_query
from app.api.services import services
from app.domain import errors
from app.domain.json_boundary import clean_text
from app.domain.worker_profile import WORKER_TYPE, WorkerEdit
from app.services.worker_messages import NewMessage, unknown_message
from app.services.workers import unknown_worker

TAG = "workers"

blueprint = Blueprint("workers", __name__)


@blueprint.get("/workers")
@documented(Operation(tag=TAG, key=Key.OPTIONAL, query=bodies.WorkersQuery, answers={200: list[shapes.Worker]}))
def list_workers() -> Response:
    """List the workers that are online."""
    uses = services()
    wanted = read_query(bodies.WorkersQuery)
    found = uses.workers.list_online(read_caller(request, uses.passkeys).api_key, wanted.name)
    return json_response(found if wanted.type in {None, WORKER_TYPE} else [])


@blueprint.get("/workers/<worker_id>")
@documented(Operation(tag=TAG, key=Key.OPTIONAL, answers={200: shapes.Worker}, refuses=(errors.WorkerNotFound,)))
def read_worker(worker_id: str) -> Response:
    """Show a worker, online or not; with its owner's or a moderator's key also what is not for everybody."""
    uses = services()
    return json_response(uses.workers.read(_id(worker_id), read_caller(request, uses.passkeys).api_key))


@blueprint.get("/workers/name/<name>")
@documented(Operation(tag=TAG, key=Key.OPTIONAL, answers={200: shapes.Worker}, refuses=(errors.WorkerNotFound,)))
def read_worker_by_name(name: str) -> Response:
    """Show the worker of exactly this name."""
    uses = services()
    return json_response(uses.workers.read_by_name(clean_text(name), read_caller(request, uses.passkeys).api_key))


@blueprint.put("/workers/<worker_id>")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.WorkerChanges,
        answers={200: shapes.WorkerChanged},
        refuses=(
            errors.WorkerNotFound,
            errors.NotOwner,
            errors.NotModerator,
            errors.NoWorkerModSelected,
            errors.TooLongWorkerName,
            errors.WorkerNameAlreadyExists,
        ),
    )
)
def edit_worker(worker_id: str) -> Response:
    """Change a worker of the caller's, and answer with what was changed; a moderator may change any."""
    uses = services()
    api_key = require_key(request)
    wanted = WorkerEdit(**read_body(bodies.WorkerChanges).model_dump())
    return json_response(uses.workers.edit(api_key, _id(worker_id), wanted))


@blueprint.delete("/workers/<worker_id>")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        answers={200: shapes.WorkerDeleted},
        refuses=(errors.WorkerNotFound, errors.NotOwner, errors.Locked),
    )
)
def delete_worker(worker_id: str) -> Response:
    """Take a worker of the caller's off the horde; not while it has a job."""
    uses = services()
    return json_response(uses.workers.delete(require_key(request), _id(worker_id)))


@blueprint.get("/workers/messages")
@documented(
    Operation(tag=TAG, key=Key.REQUIRED, query=bodies.MessagesQuery, answers={200: list[shapes.AddressedMessage]})
)
def list_messages() -> Response:
    """List the messages to the caller's workers and to all; a moderator sees every one."""
    uses = services()
    api_key = require_key(request)
    return json_response(uses.worker_messages.read_all(api_key, read_query(bodies.MessagesQuery).worker_id))


@blueprint.post("/workers/messages")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.MessageBody,
        answers={200: shapes.AddressedMessage},
        refuses=(errors.WorkerNotFound, errors.NotOwner, errors.NotModerator),
    )
)
def send_message() -> Response:
    """Write to a worker of the caller's; a moderator may write to any, and to all. Pops carry it until it expires."""
    uses = services()
    api_key = require_key(request)
    new = read_body(bodies.MessageBody)
    sent = NewMessage(message=new.message, worker_id=new.worker_id, origin=new.origin, hours=new.expiry)
    return json_response(uses.worker_messages.send(api_key, sent))


@blueprint.get("/workers/messages/<message_id>")
@documented(
    Operation(tag=TAG, key=Key.REQUIRED, answers={200: shapes.AddressedMessage}, refuses=(errors.MessageNotFound,))
)
def read_message(message_id: str) -> Response:
    """Show a message that the caller may see."""
    uses = services()
    api_key = require_key(request)
    return json_response(uses.worker_messages.read(api_key, _message_id(message_id)))


@blueprint.delete("/workers/messages/<message_id>")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        answers={200: shapes.Done},
        refuses=(errors.MessageNotFound, errors.NotOwner),
    )
)
def delete_message(message_id: str) -> Response:
    """Take a message back."""
    uses = services()
    uses.worker_messages.delete(require_key(request), _message_id(message_id))
    return json_response({"message": "OK"})


def _id(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise unknown_worker() from None


def _message_id(value: str) -> UUID:
    try:
        return UUID(value)
    except ValueError:
        raise unknown_message() from None
