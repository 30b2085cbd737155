"""Pages of any origin may call the API: browsers read every answer, errors too (wire reference 1.3)."""

from flask import Response, request

PREFLIGHT_SECONDS = 86_400
METHODS = "GET, HEAD, POST, PUT, PATCH, DELETE, OPTIONS"
ALLOWED = (
    "Accept, Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, apikey, Client-Agent, client_agent, "
    "X-Fields, X-Forwarded-For, Proxied-For, Proxy-Authorization, Idempotency-Key, Operation-Key, Authorization"
)
EXPOSED = "Retry-After, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset"


def answer_preflight() -> Response | None:
    """Answer OPTIONS on any path, before any route is looked for; None for other methods."""
    if request.method != "OPTIONS":
        return None
    response = Response(status=204)
    response.headers["Access-Control-Allow-Methods"] = METHODS
    response.headers["Access-Control-Allow-Headers"] = ALLOWED
    response.headers["Access-Control-Max-Age"] = str(PREFLIGHT_SECONDS)
    return response


def open_to_all_origins(response: Response) -> Response:
    """Let pages of every origin read an answer. No cookie means anything here, so nothing is given away."""
    response.headers["Access-Control-Allow-Origin"] = "*"
    response.headers["Access-Control-Expose-Headers"] = EXPOSED
    return response
