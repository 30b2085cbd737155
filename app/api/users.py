"""Routes that show accounts (native-api N2, wire reference 2.7)."""

from flask import Blueprint, Response, request

from app.api import bodies, shapes
from app.api.callers import read_caller, require_key
from app.api.errors import json_response
from app.api.limits import rates_of
from app.api.operations import Key, Operation, documented, read_query
from app.api.services import services
from app.api.shapes import Limits
from app.domain import errors
from app.domain.errors import InvalidApiKey, UserNotFound
from app.domain.json_boundary import parse_worker_object

TAG = "accounts"
LONGEST_ID = 18

blueprint = Blueprint("users", __name__)


@blueprint.get("/find_user")
@documented(Operation(tag=TAG, key=Key.REQUIRED, answers={200: shapes.User}, refuses=(UserNotFound,)))
def find_user() -> Response:
    """Answer with the account behind the key; without one 401, as clients of this route expect."""
    uses = services()
    api_key = read_caller(request, uses.passkeys).api_key
    if not api_key:
        raise InvalidApiKey("apikey: this header is required.", param="apikey")
    return json_response(uses.read_user.by_key(api_key))


@blueprint.get("/limits")
@documented(Operation(tag=TAG, key=Key.REQUIRED, answers={200: Limits}))
def read_limits() -> Response:
    """Show what the key may do right now: kudos, concurrency, its own limits, and what is left of the rates."""
    uses = services()
    calling = read_caller(request, uses.passkeys)
    return json_response(uses.key_limits(calling.require_key()) | {"rates": rates_of(calling)})


@blueprint.get("/users")
@documented(Operation(tag=TAG, query=bodies.UsersQuery, answers={200: list[shapes.User]}))
def list_users() -> Response:
    """List accounts as everybody sees them, 25 a page: the richest first, or the oldest."""
    wanted = read_query(bodies.UsersQuery)
    return json_response(services().read_user.page(wanted.page, wanted.sort))


@blueprint.get("/users/<user_id>")
@documented(Operation(tag=TAG, key=Key.OPTIONAL, answers={200: shapes.User}, refuses=(UserNotFound,)))
def read_user(user_id: str) -> Response:
    """Answer with an account; a key is needed only for what is not for everybody."""
    uses = services()
    return json_response(uses.read_user.by_id(_number(user_id), read_caller(request, uses.passkeys).api_key))


@blueprint.put("/users/<user_id>")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.UserChanges,
        answers={200: shapes.UserChanged},
        refuses=(
            errors.UserNotFound,
            errors.AnonForbiddenUserMod,
            errors.NotPrivileged,
            errors.NotModerator,
            errors.NotAdmin,
            errors.NonServiceForbidden,
            errors.NoUserModSelected,
            errors.TooLongUserName,
            errors.ProfaneUserName,
            errors.ProfaneUserContact,
        ),
    )
)
def edit_user(user_id: str) -> Response:
    """Change an account, as itself, a moderator or an admin; answer with what was changed."""
    uses = services()
    api_key = require_key(request)
    body = parse_worker_object(request.get_data(cache=False))
    return json_response(uses.edit_user(api_key, _number(user_id), body))


def _number(user_id: str) -> int:
    if not (user_id.isascii() and user_id.isdigit() and len(user_id) <= LONGEST_ID):
        raise UserNotFound("Accounts are named by number here.")
    return int(user_id)
