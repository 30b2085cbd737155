"""`POST /v1/chat/completions` (front F1, F3, F4)."""

import asyncio
import re
import time
from dataclasses import dataclass

from quart import Blueprint, Response, request

from app.domain.addresses import source_of
from app.domain.contract import ChatRequest, Face, parse_chat_request
from app.domain.contract.drop_table import without_no_ops
from app.domain.contract.messages import image_count
from app.domain.errors import HordeError
from app.domain.flattening import estimate_tokens, flatten
from app.domain.json_boundary import parse_object
from front import errors, sse
from front.bodies import read_body
from front.completion import AnswerForm, completion
from front.context import Front
from front.errors import FrontError
from front.exchange import Exchange, current_exchange
from front.lifecycle import ChatCall
from front.native import ANONYMOUS_KEY, Caller
from front.padding import padded
from front.responses import json_response
from front.streaming import read_reply, stream_events
from front.submission import Order
from front.wire import encode

CHECKED_ASIDE_BYTES = 128 * 1024
"""Bodies above this size are checked in a thread: megabytes would stop everybody's streams for tenths of a second."""

RESPONSE_MARGIN_SECONDS = 60.0
"""What sending may take beyond the deadline, before the server cuts a stream."""

_KEY = re.compile(r"[!-~]{1,255}")
_MODEL_CODES = frozenset({"no_eligible_worker", "model_not_found"})


@dataclass(frozen=True, slots=True)
class _Asked:
    """What of an accepted body outlives its submit; the body itself must not, for waits are long."""

    models: tuple[str, ...]
    streamed: bool
    form: AnswerForm


def chat_blueprint(front: Front) -> Blueprint:
    """The chat route."""
    blueprint = Blueprint("chat", __name__)

    @blueprint.post("/v1/chat/completions")
    async def chat_completions() -> Response:
        exchange = current_exchange()
        caller = Caller(api_key(request.headers.get("Authorization")), exchange.address, exchange.request_id)
        source = front.known_keys.source(caller.api_key) or source_of(exchange.address)
        exchange.on_close(front.admission.admit(source))
        body = await read_body(exchange, front.bodies, source, front.settings.body_read_seconds)
        call, asked = await _open_call(front, exchange, caller, body)
        del body
        await _submit(front, call, asked.models)
        exchange.let_body_go()
        if not caller.is_anonymous:
            front.known_keys.remember(caller.api_key)
        if asked.streamed:
            return _stream(front, call, asked.form)
        return await _plain(front, call, asked.form)

    return blueprint


def api_key(authorization: str | None) -> str:
    """The key in an Authorization header; the anonymous one when there is none.

    Raises FrontError (401) when the header holds something that is no key.
    """
    text = (authorization or "").strip()
    if not text or text.lower() == "bearer":
        return ANONYMOUS_KEY
    scheme, _, key = text.partition(" ")
    if scheme.lower() != "bearer" or not _KEY.fullmatch(key.strip()):
        raise FrontError(errors.invalid_key())
    return key.strip()


async def _open_call(front: Front, exchange: Exchange, caller: Caller, body: bytes) -> tuple[ChatCall, _Asked]:
    """Check the body with the rules that both faces share, and make a call of it.

    Raises FrontError.
    """
    try:
        if len(body) > CHECKED_ASIDE_BYTES:
            chat_request, form, wire = await asyncio.to_thread(_checked, body, front.settings.body_limit_bytes)
        else:
            chat_request, form, wire = _checked(body, front.settings.body_limit_bytes)
    except HordeError as error:
        front.metrics.chat_ended("invalid", 0.0)
        problem = errors.from_horde_error(error)
        if problem.code in _MODEL_CODES:
            problem = await front.models.explain(problem, ())
        raise FrontError(problem) from None
    order = Order(wire, caller, front.settings.default_deadline_seconds, repeat_key=exchange.repeat_key)
    fail_fast = chat_request.horde.availability_mode == "fail_fast"
    call = ChatCall(front.surroundings, order, fail_fast=fail_fast)
    exchange.on_close(call.close)
    return call, _Asked(chat_request.models, chat_request.stream, form)


def _checked(body: bytes, limit: int) -> tuple[ChatRequest, AnswerForm, bytes]:
    """The request in a body, the form of its answer, and what goes on to the horde.

    Raises HordeError for what breaks a rule, FrontError (413) for a body that is too long for what it holds.
    """
    given = parse_object(body)
    asked = parse_chat_request(given, Face.FRONT)
    _refuse_length(len(body), asked, limit)
    return asked, _form(asked), encode(without_no_ops(given))


def _refuse_length(size: int, asked: ChatRequest, limit: int) -> None:
    """Refuse a body that only images would make as long as it is (details D22)."""
    if size > limit and not image_count(asked.messages):
        raise FrontError(errors.body_too_large(limit))


def _form(asked: ChatRequest) -> AnswerForm:
    is_live = not asked.tools and asked.response_format is None
    return AnswerForm(
        created=int(time.time()),
        model=asked.models[0],
        conformance=asked.horde.conformance,
        prompt_tokens=estimate_tokens(flatten(asked.messages, asked.tools)),
        include_reasoning=asked.horde.include_reasoning,
        include_usage=asked.include_usage,
        # Every chunk names the model that generates; of several it is not known before one writes.
        opens_with_role=is_live and len(asked.models) == 1,
        is_live=is_live,
    )


async def _submit(front: Front, call: ChatCall, models: tuple[str, ...]) -> None:
    try:
        await call.submit()
    except FrontError as error:
        problem = error.problem
        if problem.code in _MODEL_CODES and not problem.no_retry:
            problem = await front.models.explain(problem, models)
        raise FrontError(problem) from None


async def _plain(front: Front, call: ChatCall, form: AnswerForm) -> Response:
    early = front.settings.early_headers_seconds
    standing = await (call.final_reply() if early is None else call.reply(early))
    if standing is None:
        return padded(call, form, early or 0.0, _longest(front))
    return json_response(completion(read_reply(call, standing, form), call.request_id, form))


def _stream(front: Front, call: ChatCall, form: AnswerForm) -> Response:
    response = Response(stream_events(front, call, form), headers=dict(sse.HEADERS))
    response.timeout = _longest(front)
    return response


def _longest(front: Front) -> float:
    return front.settings.default_deadline_seconds + RESPONSE_MARGIN_SECONDS
