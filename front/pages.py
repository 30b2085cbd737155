"""The page at `/`, which says how to point a client here, and the document of the routes."""

import re
from html import escape

from quart import Blueprint, Response, request

from front.openapi import document
from front.responses import json_response
from front.wire import encode

_HOST = re.compile(r"[A-Za-z0-9.:\[\]-]{1,255}")

_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Chat on a horde</title>
<style>
:root {{ color-scheme: light dark; }}
body {{ font: 1.05rem/1.6 system-ui, sans-serif; max-width: 44rem; margin: 3rem auto; padding: 0 1rem; }}
pre {{ padding: 1rem; border: 1px solid; border-radius: .5rem; overflow-x: auto; font-size: .9rem; }}
</style>
</head>
<body>
<h1>Chat on a horde</h1>
<p>Volunteers' machines answer here. Every client that speaks OpenAI's chat completions can ask:
set its base URL to <code>{base}/v1</code>, and use your key, or none to ask anonymously.
Whoever runs such a machine can read what you send: send no secrets.</p>
<pre>curl {base}/v1/chat/completions \\
  -H "Content-Type: application/json" \\
  -d '{{"model": "MODEL", "messages": [{{"role": "user", "content": "Hello"}}]}}'</pre>
<p>Online models: <a href="/v1/models">/v1/models</a> &middot; Get a key: <a href="/register">/register</a> &middot;
Routes: <a href="/openapi.json">/openapi.json</a></p>
</body>
</html>
"""


def pages_blueprint() -> Blueprint:
    """`GET /` and `GET /openapi.json`."""
    blueprint = Blueprint("pages", __name__)
    written = encode(document())

    @blueprint.get("/")
    async def index() -> Response:
        host = request.headers.get("Host", "")
        forwarded = request.headers.get("X-Forwarded-Proto", request.scheme)
        scheme = "https" if forwarded == "https" else "http"
        base = f"{scheme}://{host}" if _HOST.fullmatch(host) else ""
        return Response(_PAGE.format(base=escape(base)), content_type="text/html; charset=utf-8")

    @blueprint.get("/openapi.json")
    async def openapi() -> Response:
        return json_response(written)

    return blueprint
