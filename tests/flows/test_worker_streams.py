"""The example worker's live progress through the whole horde, as a client of OpenAI's SDK sees it (details D6, D7)."""

from typing import Any

import openai
from openai import Stream
from openai.types.chat import ChatCompletionChunk

from tests.support.horde import KEYS, MODEL, HordeProcesses
from tests.support.services import wait_until

TEXT = "Once upon a time a llama wrote 漢字 and \N{THUMBS UP SIGN}\N{EMOJI MODIFIER FITZPATRICK TYPE-4}, slowly."
STATUS = "/api/v2/generate/chat/status/"


def asked(sdk: openai.OpenAI, prompt: str) -> tuple[Stream[ChatCompletionChunk], str]:
    """An open stream whose role chunk was read, and the request's id."""
    messages: Any = [{"role": "user", "content": prompt}]
    chunks = sdk.chat.completions.create(model=MODEL, messages=messages, stream=True, max_tokens=400)
    return chunks, next(chunks).id.removeprefix("chatcmpl-")


def next_text(chunks: Stream[ChatCompletionChunk]) -> str:
    """The text of the next chunk that has any."""
    return next(text for chunk in chunks if (text := chunk.choices[0].delta.content))


def test_a_client_reads_the_first_words_while_the_worker_still_writes_the_others(horde: HordeProcesses) -> None:
    with horde.openai() as sdk:
        chunks, request_id = asked(sdk, f"[[pace=0.1]]{TEXT}")
        first = next_text(chunks)
        state = horde.call("GET", STATUS + request_id, KEYS.demo).body["state"]
        assert first + "".join(chunk.choices[0].delta.content or "" for chunk in chunks) == TEXT
    assert state == "processing"


def test_a_client_that_leaves_stops_the_workers_backend_and_costs_the_worker_nothing(horde: HordeProcesses) -> None:
    blamed = horde.query("SELECT sum(aborts) FROM workers")
    with horde.openai() as sdk:
        chunks, request_id = asked(sdk, f"[[pace=0.5]]{TEXT * 20}")
        first = next_text(chunks)
        chunks.close()
    wait_until(lambda: horde.backend_calls() == 0, 10, "the worker lets its backend write on")
    status = horde.call("GET", STATUS + request_id, KEYS.demo).body
    [generation] = status["generations"]
    assert status["state"] == "cancelled"
    assert generation["message"]["content"].startswith(first)
    assert TEXT not in generation["message"]["content"]
    assert status["kudos"] > 0
    assert horde.query("SELECT sum(aborts) FROM workers") == blamed
