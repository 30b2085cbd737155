"""Rows of the compatibility checklist (wire reference, section 8) for clients; each name carries its number."""

from typing import Any

import pytest

from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until
from tests.support.text_bridge import TextBridge

SILLYTAVERN: dict[str, Any] = {
    "prompt": "Ann: hi\nBob:",
    "params": {
        "n": 1, "frmtadsnsp": False, "frmtrmblln": False, "frmtrmspch": False, "frmttriminc": False,
        "sampler_order": [6, 0, 1, 3, 4, 2, 5], "max_context_length": 4096, "max_length": 240, "rep_pen": 1.1,
        "rep_pen_range": 600, "rep_pen_slope": 0.7, "temperature": 0.8, "tfs": 1, "top_a": 0, "top_k": 0,
        "top_p": 0.92, "min_p": 0, "typical": 1, "singleline": False, "stop_sequence": ["\nAnn:"], "mirostat": 0,
        "mirostat_tau": 5, "mirostat_eta": 0.1, "grammar": "", "use_default_badwordsids": False,
        "sampler_seed": -1, "gui_settings": False, "use_world_info": False, "streaming": False, "can_abort": True,
        "api_server": "x",
    },
    "trusted_workers": False,
}  # fmt: skip
"""What SillyTavern sends (wire reference 3.4), without its models."""

DECLARED = {
    "n", "frmtadsnsp", "frmtrmblln", "frmtrmspch", "frmttriminc", "sampler_order", "max_context_length", "max_length",
    "rep_pen", "rep_pen_range", "rep_pen_slope", "temperature", "tfs", "top_a", "top_k", "top_p", "min_p", "typical",
    "singleline", "stop_sequence", "use_default_badwordsids",
}  # fmt: skip
"""Those of its params that the text routes declare."""

NEVER_DELIVERED = {
    "gui_settings", "use_world_info", "streaming", "can_abort", "api_server", "soft_prompt", "width", "length", "steps",
}  # fmt: skip

LITE = {
    "prompt": "text",
    "params": {
        "n": 1, "max_context_length": 4096, "max_length": 240, "rep_pen": 1.07, "temperature": 0.75, "top_p": 0.92,
        "top_k": 100, "top_a": 0, "typical": 1, "tfs": 1, "rep_pen_range": 360, "rep_pen_slope": 0.7,
        "sampler_order": [6, 0, 1, 3, 4, 2, 5], "use_default_badwordsids": False, "stop_sequence": ["\n"],
        "min_p": 0, "dynatemp_range": 0, "dynatemp_exponent": 1, "smoothing_factor": 0,
    },
}  # fmt: skip
"""What KoboldAI Lite sends (wire reference 3.5), without its models and workers."""

TGPT = {"prompt": "hi", "params": {"max_length": 200, "temperature": 0.7, "top_p": 0.9, "rep_pen": 1.1}}


def test_row_05_sillytavern_is_accepted_and_its_worker_gets_what_is_declared(bridge: TextBridge) -> None:
    bridge.ask(**SILLYTAVERN)
    payload = bridge.pop().json()["payload"]
    assert payload.keys() >= DECLARED | {"prompt"}
    assert payload.keys().isdisjoint(NEVER_DELIVERED)
    sent = SILLYTAVERN["params"]
    assert {name: payload[name] for name in DECLARED} == {name: sent[name] for name in DECLARED}


def allows_any_origin(answer: Any) -> bool:
    return bool(answer.headers.get("access-control-allow-origin") == "*")


def test_row_06_lite_is_accepted_with_models_and_workers(browser: TextBridge) -> None:
    worker_id = browser.pop().json()["worker_id"]
    earlier = browser.ask()
    wait_until(lambda: bool(browser.status(earlier)["is_possible"]), 5, "the worker stays unknown")
    browser.cancel(earlier)
    body = LITE | {"models": [browser.model], "workers": [worker_id]}
    answer = browser.post("async", body, KEYS.demo)
    assert (answer.status, allows_any_origin(answer), "message" in answer.json()) == (202, True, False)
    browser.asked.append(answer.json()["id"])
    assert browser.pop().json()["payload"]["prompt"] == "text"


def test_row_06_a_browser_may_read_every_refusal(browser: TextBridge) -> None:
    waiting = [browser.ask(params={"n": 15}) for _ in range(2)]
    refusals = {
        400: browser.post("async", {"prompt": ""}, KEYS.demo),
        401: browser.post("async", {"prompt": "x"}, "no-such-key-in-the-horde"),
        403: browser.pop(key="0000000000"),
        404: browser.send("GET", "/generate/text/status/none"),
        405: browser.send("PUT", "/generate/text/async", {}),
        429: browser.post("async", {"prompt": "x", "models": [browser.model]}, KEYS.demo),
    }
    assert {status: answer.status for status, answer in refusals.items()} == {status: status for status in refusals}
    assert all(allows_any_origin(answer) and answer.json()["message"] for answer in refusals.values())
    assert len(waiting) == 2


def test_row_06_a_browser_may_read_that_the_horde_is_away(horde: HordeProcesses, browser: TextBridge) -> None:
    horde.stop("web")
    answer = browser.post("async", {"prompt": "x"}, KEYS.demo)
    horde.start("web")
    horde.wait_ready()
    assert answer.status >= 500
    assert allows_any_origin(answer)


@pytest.mark.parametrize("path", ["/generate/text/async", "/generate/text/status/x", "/workers", "/status/models"])
def test_row_06_a_preflight_is_allowed_with_what_clients_send(browser: TextBridge, path: str) -> None:
    asked = "apikey, client-agent, client_agent, content-type, idempotency-key"
    answer = browser.send(
        "OPTIONS",
        path,
        headers={
            "Origin": "https://lite.example",
            "Access-Control-Request-Method": "POST",
            "Access-Control-Request-Headers": asked,
        },
    )
    assert 200 <= answer.status < 300
    assert allows_any_origin(answer)
    assert answer.headers["access-control-allow-headers"] == asked


def test_row_07_a_cancel_needs_no_key_and_answers_with_the_whole_status(bridge: TextBridge) -> None:
    request_id = bridge.ask()
    keys = bridge.status(request_id).keys()
    answer = bridge.send("DELETE", f"/generate/text/status/{request_id}")
    assert (answer.status, answer.json().keys()) == (200, keys)
    # Nobody waits for what will never come.
    assert bridge.status(request_id)["done"]


def test_row_08_tgpt_gets_exactly_202(bridge: TextBridge) -> None:
    answer = bridge.send(
        "POST",
        "/generate/text/async",
        TGPT | {"models": [bridge.model]},
        headers={"apikey": KEYS.demo, "Client-Agent": "tgpt:v2:"},
    )
    assert answer.status == 202
    bridge.asked.append(answer.json()["id"])


def test_row_11_a_value_out_of_range_is_named_by_its_path(bridge: TextBridge) -> None:
    answer = bridge.post("async", {"prompt": "x", "params": {"max_length": 8}}, KEYS.demo)
    assert answer.status == 400
    assert list(answer.json()["errors"]) == ["params.max_length"]
    assert answer.json()["message"] == "Input payload validation failed"


def test_row_12_more_tokens_than_context_is_an_overflow(bridge: TextBridge) -> None:
    params = {"max_length": 200, "max_context_length": 100}
    answer = bridge.post("async", {"prompt": "x", "params": params}, KEYS.demo)
    assert (answer.status, answer.json()["rc"]) == (400, "TokenOverflow")


@pytest.mark.parametrize(
    ("stops", "rc"), [(["x"] * 129, "TooManyStopSequences"), (["x" * 667] * 3, "ExcessiveStopSequence")]
)
def test_row_13_too_many_or_too_long_stop_sequences_are_refused(bridge: TextBridge, stops: list[str], rc: str) -> None:
    body = {"prompt": "x", "models": [bridge.model], "params": {"stop_sequence": stops}}
    answer = bridge.post("async", body, KEYS.demo)
    assert (answer.status, answer.json()["rc"]) == (400, rc)


@pytest.mark.parametrize("stops", [["x"] * 128, ["x" * 500] * 4])
def test_row_13_as_many_and_as_long_as_allowed_are_accepted(bridge: TextBridge, stops: list[str]) -> None:
    bridge.ask(params={"stop_sequence": stops})


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("POST", "/generate/text/async", {"prompt": "x"}),
        ("POST", "/generate/text/pop", {"name": "x", "models": ["y"], "wait": 0}),
        ("POST", "/generate/text/submit", {"id": "22222222-2222-4222-8222-222222222222", "generation": ""}),
        ("PUT", "/workers/22222222-2222-4222-8222-222222222222", {"maintenance": True}),
        ("PUT", "/users/100", {"public_workers": True}),
    ],
)
def test_row_14_a_wrong_key_is_refused(bridge: TextBridge, method: str, path: str, body: dict[str, Any]) -> None:
    answer = bridge.send(method, path, body, key="no-such-key-in-the-horde")
    assert (answer.status, answer.json()["rc"]) == (401, "InvalidAPIKey")


def test_row_18_a_model_that_nobody_serves_becomes_possible_when_a_worker_comes(bridge: TextBridge) -> None:
    answer = bridge.post("async", {"prompt": "x", "models": [bridge.model]}, KEYS.demo)
    assert (answer.status, isinstance(answer.json()["message"], str)) == (202, True)
    request_id = answer.json()["id"]
    bridge.asked.append(request_id)
    assert not bridge.status(request_id)["is_possible"]
    # A worker too small for it: online, yet it does not make the request possible.
    bridge.pop(name=f"tiny {bridge.model}", max_length=16)
    assert not bridge.status(request_id)["is_possible"]
    bridge.pop()
    wait_until(lambda: bool(bridge.status(request_id)["is_possible"]), 5, "the request stays impossible")


def test_row_19_three_faults_end_the_request(bridge: TextBridge) -> None:
    request_id = bridge.ask()
    for _ in range(3):
        bridge.post("submit", {"id": bridge.pop().json()["id"], "state": "faulted", "generation": "faulted"})
    found = bridge.status(request_id)
    assert (found["faulted"], found["done"], found["generations"]) == (True, True, [])


def test_row_22_a_result_is_read_as_often_as_anybody_likes(bridge: TextBridge) -> None:
    request_id = bridge.ask()
    bridge.serve()
    wait_until(lambda: bool(bridge.status(request_id)["done"]), 10, "the request does not end")
    first = bridge.status(request_id)
    assert (first["done"], first["generations"][0]["text"]) == (True, " a time")
    assert bridge.status(request_id) == first


@pytest.mark.parametrize("spelling", ["apikey", "Apikey", "APIKEY", "ApiKey"])
@pytest.mark.parametrize("agent", ["client_agent", "Client-Agent"])
@pytest.mark.parametrize("value", ["unknown:0:unknown", "KoboldAiLite:17", "tgpt:v2:", "x"])
def test_row_23_headers_are_read_however_they_are_spelt(
    bridge: TextBridge, spelling: str, agent: str, value: str
) -> None:
    body = {"prompt": "x", "models": [bridge.model]}
    answer = bridge.send("POST", "/generate/text/async", body, headers={spelling: KEYS.demo, agent: value})
    assert answer.status == 202
    bridge.asked.append(answer.json()["id"])


def test_row_24_unknown_keys_and_whole_floats_are_accepted(bridge: TextBridge) -> None:
    bridge.ask(
        params={"max_length": 80.0, "mirostat": 2, "no_such": {}}, client_agent="x", use_default_badwordsids=True
    )
    payload = bridge.pop().json()["payload"]
    assert (payload["max_length"], "mirostat" in payload, "no_such" in payload) == (80, False, False)
