"""What is declared, from what the operator says and the probe shows."""

from dataclasses import replace

import pytest

from tools.chat_worker_example.config import WorkerConfig
from tools.chat_worker_example.declaration import OVERFLOW, TOOL_NAMES, UnusableBackend, decide
from tools.chat_worker_example.probe import Findings

CONFIG = WorkerConfig(
    horde_url="http://horde",
    api_key="key",
    backend_url="http://backend",
    model_name="m:1",
    worker_name="w",
)
FINDINGS = Findings(
    backend_model="m:1",
    llama_cpp=True,
    measured_context=4096,
    used_tokens=40,
    counted_tokens=40,
    counts_tools=True,
    shown=frozenset({"tools", "tool_choice_enforced", "tool_choice_auto_faithful", "json_object", "json_schema"}),
)


@pytest.mark.parametrize(
    ("used", "counted", "counter"),
    [(40, 40, "exact"), (40, 41, "exact"), (40, 39, "bytes"), (40, None, "bytes"), (None, 40, "none")],
)
def test_overflow_is_promised_only_with_a_counter_that_is_not_short(
    used: int | None, counted: int | None, counter: str
) -> None:
    declared = decide(CONFIG, replace(FINDINGS, used_tokens=used, counted_tokens=counted))
    assert declared.counter == counter
    assert (OVERFLOW in declared.features) == (counter != "none")
    assert (OVERFLOW in declared.withheld) == (counter == "none")


@pytest.mark.parametrize(("overhead", "declared_tools"), [(None, False), (0, True), (300, True)])
def test_the_byte_bound_covers_tools_only_with_a_template_overhead(overhead: int | None, declared_tools: bool) -> None:
    config = replace(CONFIG, template_overhead=overhead, chat_features=frozenset({"tools"}))
    declared = decide(config, replace(FINDINGS, counted_tokens=None))
    assert OVERFLOW in declared.features
    assert bool(declared.features & TOOL_NAMES) == declared_tools
    assert ("tools" in declared.withheld) != declared_tools
    assert declared.overhead == 40 + (overhead or 0)


def test_tools_are_withheld_when_the_counter_is_short_on_them() -> None:
    declared = decide(CONFIG, replace(FINDINGS, counts_tools=False))
    assert declared.counter == "exact"
    assert not declared.features & TOOL_NAMES
    assert "short" in declared.withheld["tools"]


def test_without_a_counter_tools_stand_and_serve_best_effort() -> None:
    declared = decide(CONFIG, replace(FINDINGS, used_tokens=None, counts_tools=False))
    assert "tools" in declared.features
    assert OVERFLOW not in declared.features


def test_a_llama_cpp_server_backs_guarantees_by_its_grammar() -> None:
    declared = decide(CONFIG, FINDINGS)
    assert declared.features == FINDINGS.shown | {OVERFLOW, "json_object_enforced", "json_schema_enforced"}
    assert declared.withheld == {}


def test_another_backend_gets_features_from_the_probe_and_guarantees_from_its_operator() -> None:
    other = replace(FINDINGS, llama_cpp=False)
    declared = decide(CONFIG, other)
    assert declared.features == {OVERFLOW, "tools", "json_object", "json_schema"}
    assert "CHAT_FEATURES" in declared.withheld["json_schema_enforced"]
    vouched = decide(replace(CONFIG, chat_features=frozenset({"json_schema_enforced"})), other)
    assert "json_schema_enforced" in vouched.features
    assert "json_schema_enforced" not in vouched.withheld


@pytest.mark.parametrize(
    ("configured", "measured", "context"),
    [(None, 4096, 4096), (2048, 4096, 2048), (8192, 4096, 4096), (2048, None, 2048)],
)
def test_the_smaller_of_asked_and_measured_context_is_declared(
    configured: int | None, measured: int | None, context: int
) -> None:
    config = replace(CONFIG, max_context_length=configured)
    body = decide(config, replace(FINDINGS, measured_context=measured)).pop_body(config)
    assert body["max_context_length"] == body["chat_limits"]["max_context_length"] == context


@pytest.mark.parametrize(("measured", "said"), [(None, "MAX_CONTEXT_LENGTH"), (512, "MAX_LENGTH")])
def test_an_unknown_or_too_small_context_is_refused(measured: int | None, said: str) -> None:
    with pytest.raises(UnusableBackend, match=said):
        decide(CONFIG, replace(FINDINGS, measured_context=measured))
