"""Routes for the moderation filters, for moderators (wire reference 2.8)."""

from flask import Blueprint, Response, request

from app.api import bodies, shapes
from app.api.callers import require_key
from app.api.errors import json_response
from app.api.operations import Key, Operation, documented, read_body, read_query
from app.api.services import services
from app.domain import errors
from app.services.filter_routes import KINDS, FilterEdit
from app.services.filters import NewFilter

TAG = "filters"
LONGEST_ID = 9

blueprint = Blueprint("filters", __name__)


@blueprint.get("/filters")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        query=bodies.FilterQuery,
        answers={200: list[shapes.FilterShape]},
        refuses=(errors.NotModerator,),
    )
)
def list_filters() -> Response:
    """List the filters."""
    return json_response(services().filters.read_all(_key(), read_query(bodies.FilterQuery).filter_type))


@blueprint.put("/filters")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.FilterBody,
        answers={201: shapes.FilterShape},
        refuses=(errors.NotModerator,),
    )
)
def add_filter() -> Response:
    """Add a filter. Every process follows within ten seconds."""
    api_key = _key()
    new = read_body(bodies.FilterBody)
    stored = NewFilter(KINDS[new.filter_type], new.regex, new.replacement, new.description)
    return json_response(services().filters.add(api_key, stored), 201)


@blueprint.post("/filters")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.PromptBody,
        answers={200: shapes.FilterMatches},
        refuses=(errors.NotModerator,),
    )
)
def check_prompt() -> Response:
    """Hold a text against the filters."""
    return json_response(services().filters.check(_key(), read_body(bodies.PromptBody).prompt))


@blueprint.get("/filters/regex")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        query=bodies.FilterQuery,
        answers={200: list[shapes.FilterPattern]},
        refuses=(errors.NotModerator,),
    )
)
def list_patterns() -> Response:
    """Show one pattern for all filters of a type."""
    return json_response(services().filters.patterns(_key(), read_query(bodies.FilterQuery).filter_type))


@blueprint.get("/filters/<filter_id>")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        answers={200: shapes.FilterShape},
        refuses=(errors.NotModerator, errors.FilterNotFound),
    )
)
def read_filter(filter_id: str) -> Response:
    """Show a filter."""
    return json_response(services().filters.read(_key(), _id(filter_id)))


@blueprint.patch("/filters/<filter_id>")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        body=bodies.FilterChanges,
        answers={200: shapes.FilterShape},
        refuses=(errors.NotModerator, errors.FilterNotFound, errors.NoFilterModSelected),
    )
)
def edit_filter(filter_id: str) -> Response:
    """Change a filter."""
    api_key = _key()
    wanted = FilterEdit(**read_body(bodies.FilterChanges).model_dump())
    return json_response(services().filters.edit(api_key, _id(filter_id), wanted))


@blueprint.delete("/filters/<filter_id>")
@documented(
    Operation(
        tag=TAG,
        key=Key.REQUIRED,
        answers={200: shapes.Done},
        refuses=(errors.NotModerator, errors.FilterNotFound),
    )
)
def delete_filter(filter_id: str) -> Response:
    """Remove a filter."""
    services().filters.delete(_key(), _id(filter_id))
    return json_response({"message": "OK"})


def _key() -> str:
    return require_key(request)


def _id(value: str) -> int:
    if not (value.isascii() and value.isdigit() and len(value) <= LONGEST_ID):
        raise errors.FilterNotFound("Filters are named by number.")
    return int(value)
