"""The OpenAPI document, a page that shows it, and who this horde is (operations O6, wire reference 1.1)."""

from functools import lru_cache
from importlib.resources import as_file, files

from flask import Blueprint, Flask, Response, current_app, render_template, request, send_from_directory

from app.api.document import VERSION, build_document
from app.api.errors import json_response

UI_ASSETS = frozenset({"swagger-ui.css", "swagger-ui-bundle.js", "favicon-32x32.png"})
"""What of the UI's package the page needs; nothing is fetched from elsewhere."""

START = """window.onload = () => SwaggerUIBundle({
  url: "/api/openapi.json", dom_id: "#swagger-ui", deepLinking: true, validatorUrl: null,
});
"""

PAGE_HEADERS = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; "
        "connect-src 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
DAY_SECONDS = 86_400

blueprint = Blueprint("documentation", __name__, template_folder="templates")


@blueprint.get("/api/openapi.json")
def document() -> Response:
    """Answer with the OpenAPI document."""
    return json_response(_document(current_app._get_current_object()))  # type: ignore[attr-defined]  # noqa: SLF001


@blueprint.get("/api")
@blueprint.get("/api/")
def page() -> Response:
    """Show the document to people."""
    return Response(render_template("api.html"), content_type="text/html; charset=utf-8", headers=PAGE_HEADERS)


@blueprint.get("/api/ui/start.js")
def start() -> Response:
    """Start the page."""
    return Response(START, content_type="text/javascript; charset=utf-8")


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
