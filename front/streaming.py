"""The events of a streamed chat answer (front F4): live while the worker posts, or the whole reply at its end."""

import asyncio
import logging
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import contextmanager

from front import errors, sse
from front.completion import AnswerForm, Chunks, Reply
from front.context import Front
from front.errors import FrontError
from front.lifecycle import ChatCall
from front.relay import Piece, Relay
from front.standing import Standing

log = logging.getLogger(__name__)


async def stream_events(front: Front, call: ChatCall, form: AnswerForm) -> AsyncIterator[bytes]:
    """The whole stream. What goes wrong is said in one event, then the stream ends as every other."""
    chunks = Chunks(call.request_id, form)
    events = _live(front, call, form, chunks) if form.is_live else _whole(front, call, form, chunks)
    with front.metrics.streams.track_inprogress():
        try:
            async for event in events:
                yield event
        except FrontError as error:
            front.metrics.stream_broke(error.problem.code)
            yield sse.frame(error.problem.envelope()) + sse.DONE
        finally:
            await events.aclose()


def read_reply(call: ChatCall, standing: Standing, form: AnswerForm) -> Reply:
    """The reply.

    Raises FrontError (502) for one that has not the shape that the horde promises.
    """
    try:
        return Reply.read(standing, call.request_id, form)
    except (AttributeError, KeyError, TypeError):
        log.exception("a reply cannot be read")
        problem = errors.no_generation("the reply cannot be read")
        raise FrontError(problem).after_submit() from None


async def _whole(front: Front, call: ChatCall, form: AnswerForm, chunks: Chunks) -> AsyncGenerator[bytes]:
    """Comments in silence, then the whole reply."""
    if form.opens_with_role:
        yield chunks.opening()
    while (standing := await call.reply(front.settings.keep_alive_seconds)) is None:
        yield sse.KEEP_ALIVE
    yield chunks.whole(read_reply(call, standing, form))


async def _live(front: Front, call: ChatCall, form: AnswerForm, chunks: Chunks) -> AsyncGenerator[bytes]:
    """The opening, deltas as they become due, comments in silence, and the rest of the reply at once when it is there.

    Where one of several models writes, the opening waits for its name: clients take the first chunk's.
    The status is watched by a task of its own: a native API that is slow to answer must not stop the text.
    """
    if form.opens_with_role:
        yield chunks.opening()
    with _relaying(front, call, form) as (relay, watching):
        last_said = time.monotonic()
        while not watching.done():
            event = _deltas(chunks, relay.pieces(), relay.model)
            now = time.monotonic()
            if not event and now >= last_said + front.settings.keep_alive_seconds:
                event = sse.KEEP_ALIVE
            if event:
                yield event
                last_said = time.monotonic()
            else:
                await relay.rest(last_said + front.settings.keep_alive_seconds)
        reply = read_reply(call, watching.result(), form)
        rest = relay.last_pieces(reply.content, reply.reasoning)
        yield chunks.opening(reply.model) + _deltas(chunks, rest, reply.model) + chunks.closing(reply)


@contextmanager
def _relaying(front: Front, call: ChatCall, form: AnswerForm) -> Iterator[tuple[Relay, asyncio.Task[Standing]]]:
    relay = front.live.open(
        call.request_id, shows_reasoning=form.include_reasoning, needs_model=not form.opens_with_role
    )
    call.relayed = relay.relayed
    watching = asyncio.get_running_loop().create_task(call.final_reply())
    watching.add_done_callback(lambda _: relay.wake())
    try:
        yield relay, watching
    finally:
        relay.close()
        if not watching.cancel() and not watching.cancelled():
            watching.exception()


def _deltas(chunks: Chunks, pieces: list[Piece], model: str | None) -> bytes:
    if not pieces:
        return b""
    return chunks.opening(model) + b"".join(chunks.text(piece.key, piece.text) for piece in pieces)
