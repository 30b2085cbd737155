"""Every row of contract C6 over HTTP, in both modes, with a worker that replies what it likes."""

from typing import Any

import pytest

from tests.support.hand_worker import Answered, HandWorker, call
from tests.support.horde import HordeProcesses

Json = dict[str, Any]

MODEL = "judged-by-hand"
TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g")]
NAMED = {"type": "function", "function": {"name": "f"}}
OBJECT = {"type": "json_object"}
STRICT = {
    "type": "json_schema",
    "json_schema": {
        "name": "n",
        "strict": True,
        "schema": {
            "type": "object",
            "properties": {"a": {"type": "integer"}},
            "required": ["a"],
            "additionalProperties": False,
        },
    },
}


def calls(*names: str, arguments: object = "{}", ids: tuple[str, ...] = ("c0", "c1")) -> Json:
    made = [
        {"id": ids[index], "type": "function", "function": {"name": name, "arguments": arguments}}
        for index, name in enumerate(names)
    ]
    return {"message": {"content": None, "tool_calls": made}, "finish_reason": "tool_calls"}


def says(content: str) -> Json:
    return {"message": {"content": content}, "finish_reason": "stop"}


@pytest.fixture
def worker(horde: HordeProcesses) -> HandWorker:
    made = HandWorker(horde, MODEL)
    assert made.pop() is None
    return made


def judged(worker: HandWorker, mode: str, members: Json, reply: Json) -> tuple[Answered, Json]:
    """The verdict on a reply and the status of its request, which is cancelled if it is still open."""
    native = f"{worker.horde.native}/api/v2/generate/chat"
    body = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], "horde": {"conformance": mode}} | members
    asked = call("POST", f"{native}/async", body)
    assert asked.status == 202, asked
    job = worker.wait_for_job()
    answer = worker.submit(job["id"], reply)
    status = call("GET", f"{native}/status/{asked.body['id']}").body
    call("DELETE", f"{native}/status/{asked.body['id']}")
    return answer, status


STRICT_ONLY = [
    ({"tools": TOOLS, "tool_choice": "none"}, calls("f"), "tool_choice is none"),
    ({"tools": TOOLS, "tool_choice": "required"}, says("no"), "calls no tool"),
    ({"tools": TOOLS, "tool_choice": NAMED}, says("no"), "calls no tool"),
    ({"tools": TOOLS, "tool_choice": NAMED}, calls("g"), "another function than 'f'"),
    ({"response_format": OBJECT}, says("prose"), "not JSON"),
    ({"response_format": OBJECT}, says("[1]"), "not a JSON object"),
    ({"response_format": STRICT}, says("prose"), "not JSON"),
    ({"response_format": STRICT}, says('{"a":"1"}'), "$.a breaks 'type'"),
]
BOTH_MODES = [
    ({}, calls("f"), "not among the client's tools"),
    ({"tools": TOOLS}, calls("h"), "not among the client's tools"),
    ({"tools": TOOLS}, calls("f", "g", ids=("c", "c")), "share an id"),
    ({"tools": TOOLS}, calls("f", arguments="{"), "not JSON"),
    ({"tools": TOOLS}, calls("f", arguments="[]"), "not a JSON object"),
]
MALFORMED = [
    ({"message": "hi", "finish_reason": "stop"}, "'message' must be an object"),
    ({"message": {"content": 5}, "finish_reason": "stop"}, "'message.content' must be a string"),
    ({"message": {"content": "hi"}, "finish_reason": "done"}, "'finish_reason' must be one of"),
    ({"message": {"tool_calls": {}}, "finish_reason": "stop"}, "'message.tool_calls' must be a list"),
    ({"message": {"tool_calls": [{"id": ""}]}, "finish_reason": "stop"}, "must be an object with a 'function'"),
]


@pytest.mark.parametrize(("members", "reply", "named"), STRICT_ONLY, ids=lambda value: str(value)[:60])
def test_a_reply_beside_the_contract_is_refused_under_strict_and_kept_under_best_effort(
    worker: HandWorker, members: Json, reply: Json, named: str
) -> None:
    answer, status = judged(worker, "strict", members, reply)
    assert (answer.status, answer.body["rc"]) == (400, "ChatReplyRefused")
    assert named in answer.body["message"]
    assert (status["state"], status["restarted"], status["generations"]) == ("queued", 1, [])
    answer, status = judged(worker, "best_effort", members, reply)
    assert answer.status == 200
    assert status["generations"][0]["message"]["content"] == reply["message"]["content"]


@pytest.mark.parametrize("mode", ["strict", "best_effort"])
@pytest.mark.parametrize(("members", "reply", "named"), BOTH_MODES, ids=lambda value: str(value)[:60])
def test_a_reply_that_no_client_could_use_is_refused_in_both_modes(
    worker: HandWorker, mode: str, members: Json, reply: Json, named: str
) -> None:
    answer, status = judged(worker, mode, members, reply)
    assert (answer.status, answer.body["rc"]) == (400, "ChatReplyRefused")
    assert named in answer.body["message"]
    assert (status["state"], status["restarted"]) == ("queued", 1)


@pytest.mark.parametrize(("reply", "named"), MALFORMED, ids=lambda value: str(value)[:60])
def test_a_malformed_reply_is_refused_naming_what_is_wrong(worker: HandWorker, reply: Json, named: str) -> None:
    answer, _ = judged(worker, "best_effort", {"tools": TOOLS}, reply)
    assert (answer.status, answer.body["rc"]) == (400, "ChatReplyRefused")
    assert named in answer.body["message"]


def test_one_call_is_kept_where_the_client_wants_no_parallel_calls(worker: HandWorker) -> None:
    members = {"tools": TOOLS, "parallel_tool_calls": False}
    answer, status = judged(worker, "strict", members, calls("f", "g"))
    assert answer.status == 200
    kept = status["generations"][0]["message"]["tool_calls"]
    assert [each["function"]["name"] for each in kept] == ["f"]
    _, status = judged(worker, "best_effort", members, calls("f", "g"))
    assert len(status["generations"][0]["message"]["tool_calls"]) == 2


def test_a_strict_schema_that_matches_is_answered(worker: HandWorker) -> None:
    answer, status = judged(worker, "strict", {"response_format": STRICT}, says('{"a":1}'))
    assert answer.status == 200
    assert status["generations"][0]["message"]["content"] == '{"a":1}'


def test_a_schema_that_keeps_killing_its_verifier_faults_the_request_and_pays_the_worker(
    horde: HordeProcesses, worker: HandWorker
) -> None:
    numbers = {"type": "array", "items": {"anyOf": [{"const": 1}, {"const": 2}, {"type": "integer"}]}}
    schema = {"type": "object", "properties": {"a": numbers}, "required": ["a"], "additionalProperties": False}
    asked = {"response_format": {"type": "json_schema", "json_schema": {"name": "n", "strict": True, "schema": schema}}}
    endless = says('{"a":[' + ",".join(str(number) for number in range(1000, 301_000)) + "]}")
    native = f"{horde.native}/api/v2/generate/chat"
    request = {"model": MODEL, "messages": [{"role": "user", "content": "hi"}], **asked}
    request_id = call("POST", f"{native}/async", request).body["id"]
    job = worker.wait_for_job()
    verdict = worker.submit(job["id"], endless)
    assert verdict.status == 200
    assert verdict.body["reward"] > 0
    status = call("GET", f"{native}/status/{request_id}").body
    assert (status["state"], status["fault"]["rc"], status["kudos"]) == ("faulted", "SchemaTooCostly", 0)
    assert horde.query(
        "SELECT kind FROM ledger_entries WHERE business_key = :key ORDER BY kind", key=f"compensation:{job['id']}"
    ) == [
        ("compensation",),
        ("compensation_paid",),
    ]
    assert horde.query("SELECT 1 FROM ledger_entries WHERE business_key = :key", key=f"generation:{job['id']}") == []
