"""What other servers were reported to get wrong about a worker's odd reply, by symptom, through the front."""

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import orjson
import pytest
from openai import LengthFinishReasonError
from openai.types.chat import ChatCompletion, ParsedChatCompletion

from tests.support.hand_worker import Answered, HandWorker
from tests.support.horde import HordeProcesses

Json = dict[str, Any]
Choice = Any

MODEL = "odd-replies"
TOOLS: list[Json] = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
HI: Any = [{"role": "user", "content": "hi"}]


@pytest.fixture
def worker(horde: HordeProcesses) -> HandWorker:
    made = HandWorker(horde, MODEL)
    assert made.pop() is None
    return made


@contextmanager
def asked(worker: HandWorker, *, stream: bool, **members: Any) -> Iterator[Future[Choice]]:
    """Ask beside the test; the future is the one choice, the same however it came."""

    def ask() -> Choice:
        completions = worker.horde.openai().chat.completions
        answer: ChatCompletion | ParsedChatCompletion[None]
        if stream:
            with completions.stream(model=MODEL, messages=HI, **members) as events:
                answer = events.get_final_completion()
        else:
            answer = completions.create(model=MODEL, messages=HI, **members)
        return answer.choices[0]

    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(ask)


def answered(worker: HandWorker, reply: Json, *, stream: bool, **members: Any) -> Choice:
    """The choice that the client gets for a worker's reply."""
    with asked(worker, stream=stream, **members) as choice:
        verdict = worker.submit(worker.wait_for_job()["id"], reply)
        assert verdict.status == 200, verdict
        return choice.result(30)


def calls(*functions: Json, finish: str = "tool_calls", ids: tuple[str, ...] = ("c0", "c1")) -> Json:
    made = [{"id": ids[index], "type": "function", "function": function} for index, function in enumerate(functions)]
    return {"message": {"content": None, "tool_calls": made}, "finish_reason": finish}


def functions_of(choice: Choice) -> list[tuple[str, str]]:
    return [(each.function.name, each.function.arguments) for each in choice.message.tool_calls or []]


both_modes = pytest.mark.parametrize("stream", [False, True], ids=["plain", "streamed"])


@both_modes
@pytest.mark.parametrize(
    ("arguments", "text"), [({"a": 1}, '{"a": 1}'), (None, "{}"), ("", "{}"), ('{"a":1}', '{"a":1}')]
)
def test_arguments_are_a_string_whatever_the_worker_made_of_them(
    worker: HandWorker, stream: bool, arguments: object, text: str
) -> None:
    choice = answered(worker, calls({"name": "f", "arguments": arguments}), stream=stream, tools=TOOLS)
    assert functions_of(choice) == [("f", text)]


@both_modes
@pytest.mark.parametrize("tool_choice", ["auto", "required", {"type": "function", "function": {"name": "f"}}])
def test_the_finish_reason_of_calls_is_the_same_in_both_modes(
    worker: HandWorker, stream: bool, tool_choice: object
) -> None:
    reply = calls({"name": "f", "arguments": "{}"}, finish="stop")
    assert answered(worker, reply, stream=stream, tools=TOOLS, tool_choice=tool_choice).finish_reason == "tool_calls"


def test_a_cut_call_is_told_as_cut(worker: HandWorker) -> None:
    reply = calls({"name": "f", "arguments": "{}"}, finish="length")
    assert answered(worker, reply, stream=False, tools=TOOLS).finish_reason == "length"
    with pytest.raises(LengthFinishReasonError):
        answered(worker, reply, stream=True, tools=TOOLS)


@both_modes
def test_one_call_comes_where_the_client_wants_no_parallel_calls(worker: HandWorker, stream: bool) -> None:
    reply = calls({"name": "f", "arguments": "{}"}, {"name": "g", "arguments": "{}"})
    choice = answered(worker, reply, stream=stream, tools=TOOLS, parallel_tool_calls=False)
    assert functions_of(choice) == [("f", "{}")]


@both_modes
def test_two_calls_of_one_reply_stay_two_whole_calls(worker: HandWorker, stream: bool) -> None:
    reply = calls({"name": "f", "arguments": '{"a":1}'}, {"name": "f", "arguments": '{"a":2}'})
    choice = answered(worker, reply, stream=stream, tools=TOOLS)
    assert functions_of(choice) == [("f", '{"a":1}'), ("f", '{"a":2}')]


def test_calls_that_share_an_id_are_given_to_another_worker(worker: HandWorker) -> None:
    twice = calls({"name": "f", "arguments": "{}"}, {"name": "g", "arguments": "{}"}, ids=("x", "x"))
    with asked(worker, stream=False, tools=TOOLS) as choice:
        assert worker.submit(worker.wait_for_job()["id"], twice).status == 400
        assert worker.submit(worker.wait_for_job()["id"], calls({"name": "f", "arguments": "{}"})).status == 200
        assert functions_of(choice.result(30)) == [("f", "{}")]


@both_modes
def test_a_reply_without_calls_has_no_list_of_them(worker: HandWorker, stream: bool) -> None:
    reply = {"message": {"content": "hello", "tool_calls": []}, "finish_reason": "stop"}
    assert answered(worker, reply, stream=stream, tools=TOOLS).message.tool_calls is None


BROKEN_TEXT = [
    (b'"\\udcaf lone"', "\ufffd lone"),
    (b'"\\ud83d\\ud83d\\udc69"', "\ufffd👩"),
    (b'"\xff byte"', "\ufffd byte"),
    (b'"nul \\u0000"', "nul \ufffd"),
    ('"👩‍👩‍👧‍👦 ñ 漢 \u2028"'.encode(), "👩‍👩‍👧‍👦 ñ 漢 \u2028"),
]


@both_modes
@pytest.mark.parametrize(("raw", "text"), BROKEN_TEXT)
def test_text_that_no_client_could_decode_arrives_mended(
    worker: HandWorker, stream: bool, raw: bytes, text: str
) -> None:
    with asked(worker, stream=stream) as choice:
        job_id = orjson.dumps(worker.wait_for_job()["id"])
        body = b'{"id":' + job_id + b',"finish_reason":"stop","message":{"content":' + raw + b"}}"
        verdict: Answered = worker.submit("", body)
        assert verdict.status == 200, verdict
        assert choice.result(30).message.content == text
