"""What is declared, from what the operator says and the probe shows."""

from dataclasses import replace

import pytest

from tools.chat_worker_example.backends import JSON_GUARANTEES, TOOL_GUARANTEES
from tools.chat_worker_example.config import WorkerConfig
from tools.chat_worker_example.declaration import OVERFLOW, TOOL_NAMES, UnusableBackend, decide
from tools.chat_worker_example.probe import Evidence, Findings

CONFIG = WorkerConfig(
    horde_url="http://horde",
    api_key="key",
    backend_url="http://backend",
    model_name="m:1",
    worker_name="w",
)
SHOWN = {"tools", "tool_choice_enforced", "tool_choice_auto_faithful", "json_object", "json_schema"}
FINDINGS = Findings(
    kind="llama.cpp",
    backend_model="m:1",
    enforces=JSON_GUARANTEES | TOOL_GUARANTEES,
    measured_context=4096,
    used_tokens=40,
    counted_tokens=40,
    counts_tools=True,
    evidence={name: Evidence(True, f"{name} was seen") for name in SHOWN}
    | {name: Evidence(False, f"{name} was not seen") for name in ("images", "reasoning")},
)


def seeing(*names: str) -> Findings:
    """The findings, with evidence for these names too."""
    return replace(FINDINGS, evidence=FINDINGS.evidence | {name: Evidence(True, "seen") for name in names})


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


@pytest.mark.parametrize(("kept", "promised"), [(None, True), (4096, True), (3900, True), (2048, False), (12, False)])
def test_overflow_is_not_promised_for_a_context_that_the_backend_does_not_keep(
    kept: int | None, promised: bool
) -> None:
    declared = decide(CONFIG, replace(FINDINGS, trimmed_to=kept))
    assert (OVERFLOW in declared.features) == promised
    assert promised or f"kept {kept}" in declared.withheld[OVERFLOW]


@pytest.mark.parametrize(("overhead", "declared_tools"), [(None, False), (0, True), (300, True)])
@pytest.mark.parametrize("vouched", [frozenset(), frozenset({"tools"})])
def test_the_byte_bound_covers_tools_only_with_a_template_overhead(
    overhead: int | None, declared_tools: bool, vouched: frozenset[str]
) -> None:
    config = replace(CONFIG, template_overhead=overhead, declare=vouched)
    declared = decide(config, replace(FINDINGS, counted_tokens=None))
    assert OVERFLOW in declared.features
    assert bool(declared.features & TOOL_NAMES) == declared_tools
    assert ("tools" in declared.withheld) != declared_tools
    assert declared.overhead == 40 + (overhead or 0)


@pytest.mark.parametrize(("image_tokens", "declared_images"), [(None, False), (1024, True)])
def test_images_are_declared_only_with_what_one_may_take(image_tokens: int | None, declared_images: bool) -> None:
    config = replace(CONFIG, image_tokens=image_tokens)
    declared = decide(config, seeing("images"))
    assert ("images" in declared.features) == declared_images
    transports = ["url", "base64", "messages_url"] if declared_images else ["messages_url"]
    assert declared.pop_body(config)["image_transports"] == transports


def test_only_the_transports_that_the_operator_allows_are_declared() -> None:
    config = replace(CONFIG, image_tokens=1024, image_transports=("base64", "messages_url"))
    assert decide(config, seeing("images")).pop_body(config)["image_transports"] == ["base64", "messages_url"]


def test_tools_are_withheld_when_the_counter_is_short_on_them() -> None:
    declared = decide(CONFIG, replace(FINDINGS, counts_tools=False))
    assert declared.counter == "exact"
    assert not declared.features & TOOL_NAMES
    assert "short" in declared.withheld["tools"]


def test_without_a_counter_tools_and_images_stand_and_serve_best_effort() -> None:
    declared = decide(CONFIG, replace(seeing("images"), used_tokens=None, counts_tools=False))
    assert {"tools", "images"} <= declared.features
    assert OVERFLOW not in declared.features


def test_a_kind_that_enforces_backs_guarantees_by_what_showed() -> None:
    declared = decide(CONFIG, FINDINGS)
    assert declared.features == SHOWN | {OVERFLOW, "json_object_enforced", "json_schema_enforced"}
    assert set(declared.withheld) == {"images", "reasoning", "single_tool_call_enforced"}


def test_a_kind_that_does_not_gets_features_from_the_probe_and_guarantees_from_its_operator() -> None:
    other = replace(FINDINGS, enforces=frozenset())
    declared = decide(CONFIG, other)
    assert declared.features == {OVERFLOW, "tools", "json_object", "json_schema"}
    assert "DECLARE" in declared.withheld["json_schema_enforced"]
    vouched = decide(replace(CONFIG, declare=frozenset({"json_schema_enforced"})), other)
    assert "json_schema_enforced" in vouched.features
    assert "json_schema_enforced" not in vouched.withheld


def test_the_operator_may_leave_out_what_showed() -> None:
    declared = decide(replace(CONFIG, no_declare=frozenset({"tools", OVERFLOW, "images"})), FINDINGS)
    assert not {"tools", OVERFLOW} & declared.features
    assert declared.withheld["tools"] == "by NO_DECLARE, although: tools was seen"


def test_every_name_has_a_reason_for_or_against_it() -> None:
    declared = decide(CONFIG, FINDINGS)
    assert set(declared.because) == declared.features
    assert not set(declared.because) & set(declared.withheld)
    assert all(declared.because.values())
    assert all(declared.withheld.values())


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


def test_limits_that_the_operator_sets_are_declared() -> None:
    config = replace(CONFIG, max_tools=8, tools_max_temperature=1.0)
    limits = decide(config, FINDINGS).pop_body(config)["chat_limits"]
    assert limits == {"max_context_length": 4096, "max_length": 512, "max_tools": 8, "tools_max_temperature": 1.0}


@pytest.mark.parametrize(("measured", "said"), [(None, "MAX_CONTEXT_LENGTH"), (512, "MAX_LENGTH")])
def test_an_unknown_or_too_small_context_is_refused(measured: int | None, said: str) -> None:
    with pytest.raises(UnusableBackend, match=said):
        decide(CONFIG, replace(FINDINGS, measured_context=measured))
