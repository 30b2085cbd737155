"""The OpenAPI document, a page that shows it, and who this horde is (operations O6, wire reference 1.1)."""

from functools import lru_cache
from importlib.resources import as_file, files

from flask import Blueprint, Flask, Response, current_app, request, send_from_directory

import pages
from app.api.document import VERSION, build_document
from app.api.errors import json_response

UI_ASSETS = frozenset({"swagger-ui.css", "swagger-ui-bundle.js"})
"""What of the UI's package the page needs; nothing is fetched from elsewhere."""

DAY_SECONDS = 86_400

blueprint = Blueprint("documentation", __name__)


@blueprint.get("/api/openapi.json")
def document() -> Response:
    """Answer with the OpenAPI document."""
    return json_response(_document(current_app._get_current_object()))  # type: ignore[attr-defined]  # noqa: SLF001


@blueprint.get("/api")
@blueprint.get("/api/")
def page() -> Response:
    """Show the document to people."""
    html = pages.render("api.html", title="Native API of this horde", document="/api/openapi.json")
    return Response(html, headers=dict(pages.SWAGGER_HEADERS), content_type=pages.HTML)


@blueprint.get("/api/ui/<name>")
def asset(name: str) -> Response:
    """Answer with a file of the UI's package."""
    if name not in UI_ASSETS:
        name = "missing"
    with as_file(files("flask_swagger_ui") / "dist") as folder:
        return send_from_directory(folder, name, max_age=DAY_SECONDS)


@blueprint.get("/.well-known/serviceinfo")
def service_info() -> Response:
    """Say what runs here and where its API is."""
    base = request.host_url.rstrip("/")
    return json_response(
        {
            "version": "0.2",
            "software": {"name": "horde", "version": VERSION, "repository": None, "homepage": base, "logo": None},
            "api": {
                "aihorde": {
                    "name": "Horde",
                    "version": VERSION,
                    "base_url": f"{base}/api/v2",
                    "rel_url": "/api/v2",
                    "documentation": f"{base}/api",
                }
            },
        }
    )


@lru_cache(maxsize=1)
def _document(app: Flask) -> dict[str, object]:
    return build_document(app)
