"""Plain answers for routers that wait too short a time (details D20).

Off unless EARLY_HEADERS_SECONDS is set. What it gives up: once the headers are out the status
is 200, so an error that comes later is an envelope under a 200, which clients take for a reply.
"""

from collections.abc import AsyncIterator

from quart import Response

from front.completion import AnswerForm, completion
from front.errors import FrontError
from front.lifecycle import ChatCall
from front.responses import JSON
from front.streaming import read_reply

SPACE = b" "
"""White space before JSON says nothing, and keeps a router from giving up."""


def padded(call: ChatCall, form: AnswerForm, seconds: float, longest: float) -> Response:
    """An answer that begins now, says nothing every `seconds`, and ends within `longest`."""
    response = Response(_parts(call, form, seconds), content_type=JSON)
    response.timeout = longest
    return response


async def _parts(call: ChatCall, form: AnswerForm, seconds: float) -> AsyncIterator[bytes]:
    yield SPACE
    try:
        while (standing := await call.reply(seconds)) is None:
            yield SPACE
        yield completion(read_reply(call, standing, form), call.request_id, form)
    except FrontError as error:
        yield error.problem.envelope()
