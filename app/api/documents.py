"""Routes for the operator's texts and news (wire reference 2.8)."""

from flask import Blueprint, Response

from app.api import bodies, shapes
from app.api.errors import json_response
from app.api.operations import Operation, documented, read_query
from app.api.services import services
from app.services.documents import NewsItem

TAG = "documents"

blueprint = Blueprint("documents", __name__)


@blueprint.get("/documents/<document>")
@documented(Operation(tag=TAG, query=bodies.DocumentQuery, answers={200: shapes.DocumentText}))
def show(document: str) -> Response:
    """Show the terms, the privacy notice or the sponsors: `terms`, `privacy`, `sponsors`."""
    uses = services().documents
    if read_query(bodies.DocumentQuery).format == "markdown":
        return json_response({"markdown": uses.markdown(document)})
    return json_response({"html": uses.html(document)})


@blueprint.get("/status/news")
@documented(Operation(tag=TAG, answers={200: list[NewsItem]}))
def news() -> Response:
    """List the horde's news."""
    return json_response(services().documents.news())
