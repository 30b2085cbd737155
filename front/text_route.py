"""`POST /api/v2/generate/text/async`: forwarded under an operation key, so that a lost answer costs nobody a request.

The client's own key wins. The body is held until a root has answered, to be sent again to another one.
"""

from quart import Blueprint, Response

from app.domain.addresses import source_of
from front import errors
from front.bodies import read_body
from front.context import Front
from front.errors import FrontError
from front.exchange import current_exchange
from front.forwarding import request_headers, response_headers, target_path
from front.native import Unreachable
from front.responses import native_problem
from front.submission import operation_key, submit_text

PATHS = (("api", "/api/v2/generate/text/async"), ("short", "/v2/generate/text/async"))


def text_blueprint(front: Front) -> Blueprint:
    """The text submit, under both prefixes."""
    blueprint = Blueprint("text", __name__)

    async def submit() -> Response:
        try:
            return await _submitted(front)
        except FrontError as error:
            return native_problem(error.problem)
        except Unreachable:
            return native_problem(errors.unreachable())

    for name, path in PATHS:
        blueprint.add_url_rule(path, name, submit, methods=["POST"], provide_automatic_options=False)
    return blueprint


async def _submitted(front: Front) -> Response:
    """A root's answer. Raises FrontError for a body that cannot be taken, Unreachable when no root answers."""
    exchange = current_exchange()
    release = front.admission.hold()
    if release is None:
        raise FrontError(errors.at_capacity("on this server"))
    exchange.on_close(release)
    source = source_of(exchange.address)
    body = await read_body(exchange, front.bodies, source, front.settings.body_read_seconds)
    headers = request_headers(front.native, exchange)
    headers.setdefault("Operation-Key", operation_key(exchange.repeat_key))
    answer = await submit_text(front.native, target_path(), body, headers, front.metrics)
    response = Response(answer.body, status=answer.status)
    response.headers.clear()
    response.headers.extend(response_headers(answer.headers))
    return response
