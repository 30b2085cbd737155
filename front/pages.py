"""The front's own pages: how to point a client here, a chat to try it, and the documents of the routes.

The native API's pages (status, register, the operator's texts) are passed on: `front.passthrough`.
"""

import re

from quart import Blueprint, Response, request

import pages
from front import errors
from front.errors import FrontError
from front.native import ANONYMOUS_KEY
from front.openapi import document
from front.responses import json_response
from front.wire import encode

_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")


def pages_blueprint() -> Blueprint:
    """`GET /`, `/chat`, `/docs`, `/openapi.json`, and the files that pages need."""
    blueprint = Blueprint("pages", __name__)
    written = encode(document())

    @blueprint.get("/")
    async def index() -> Response:
        return _page("connect.html", current="Connect", base=_base())

    @blueprint.get("/chat")
    async def chat() -> Response:
        return _page("chat.html", current="Chat", anonymous_key=ANONYMOUS_KEY)

    @blueprint.get("/docs")
    async def docs() -> Response:
        html = pages.render("api.html", title="The front of this horde", document="/openapi.json")
        return Response(html, content_type=pages.HTML, headers=dict(pages.SWAGGER_HEADERS))

    @blueprint.get("/openapi.json")
    async def openapi() -> Response:
        return json_response(written)

    @blueprint.get("/pages/<name>")
    async def asset(name: str) -> Response:
        found = pages.ASSETS.get(name)
        if found is None:
            raise FrontError(errors.unknown_route("GET", f"{pages.FOLDER}{name[: errors.LONGEST_ECHO]}"))
        return Response(found.body, headers=found.headers)

    return blueprint


def _page(template: str, **values: object) -> Response:
    html = pages.render(template, through_front=True, **values)
    return Response(html, content_type=pages.HTML, headers=dict(pages.HEADERS))


def _base() -> str:
    """This address as its client wrote it; nothing when it wrote something else."""
    host = request.headers.get("Host", "")
    forwarded = request.headers.get("X-Forwarded-Proto", request.scheme)
    scheme = "https" if forwarded == "https" else "http"
    return f"{scheme}://{host}" if _HOST.fullmatch(host) else ""
