"""The front as one application.

Its places: `chat` answers OpenAI's clients through `lifecycle`, `models` lists what is
online, `pop_route` holds workers' pops, `text_route` submits texts, `native_stream` follows a request,
`status_feed` keeps status pages new, `pages` shows the front's own, `passthrough` forwards the rest of the native
API. Each is a blueprint of its own; a further surface is one more.
"""

import logging
from typing import cast

from hypercorn.typing import ASGIFramework
from quart import Quart, Response, request
from werkzeug.exceptions import HTTPException, MethodNotAllowed

from front import errors
from front.chat import chat_blueprint
from front.context import Front
from front.errors import FrontError
from front.exchange import current_exchange
from front.gate import Gate, GateLimits
from front.health import health_blueprint
from front.models import models_blueprint
from front.native_stream import native_stream_blueprint
from front.pages import pages_blueprint
from front.passthrough import passthrough_blueprint
from front.pop_route import pop_blueprint
from front.responses import openai_problem
from front.status_feed import status_feed_blueprint
from front.text_route import text_blueprint

log = logging.getLogger(__name__)


def create_app(front: Front) -> ASGIFramework:
    """The gate with everything behind it."""
    app = Quart(__name__, static_folder=None)
    # The gate bounds bodies; Quart's own limit would drop a client without an answer.
    app.config["MAX_CONTENT_LENGTH"] = None
    app.config["BODY_TIMEOUT"] = None
    # A redirect would turn a POST into an empty GET; the gate mends what OpenAI's paths need.
    app.url_map.merge_slashes = False
    app.url_map.strict_slashes = True
    app.url_map.redirect_defaults = False
    for blueprint in (
        chat_blueprint(front),
        models_blueprint(front.models),
        pop_blueprint(front),
        text_blueprint(front),
        native_stream_blueprint(front),
        health_blueprint(front),
        pages_blueprint(),
        status_feed_blueprint(front),
        passthrough_blueprint(front),
    ):
        app.register_blueprint(blueprint)
    _answer_errors(app)
    app.before_request(_name_route)
    limits = GateLimits(front.settings.body_limit_bytes, front.settings.image_body_limit_bytes, front.settings.proxies)
    return Gate(cast("ASGIFramework", app), limits, front.drain, front.metrics)


async def _name_route() -> None:
    """Tell the exchange which route it is, by its rule: a path would be as many figures as there are ids."""
    if request.url_rule is not None:
        current_exchange().route = request.url_rule.rule


def _answer_errors(app: Quart) -> None:
    """Everything that goes wrong is said in the envelope (front F5)."""

    @app.errorhandler(FrontError)
    async def refused(error: FrontError) -> Response:
        return openai_problem(error.problem)

    @app.errorhandler(HTTPException)
    async def unrouted(error: HTTPException) -> Response:
        method, path = request.method, request.path[: errors.LONGEST_ECHO]
        if isinstance(error, MethodNotAllowed):
            response = openai_problem(errors.wrong_method(method, path))
            response.headers["Allow"] = ", ".join(sorted(error.valid_methods or []))
            return response
        return openai_problem(errors.unknown_route(method, path))

    @app.errorhandler(Exception)
    async def broken(error: Exception) -> Response:
        log.error("a request failed", exc_info=error)
        return openai_problem(errors.defect())
