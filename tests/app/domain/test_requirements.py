"""What a request requires, and the class that it falls into."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.capabilities import (
    Declaration,
    Requirements,
    class_of,
    covers,
    may_cover,
    required_chat_features,
    requirements_of,
)

TOOLS = [{"type": "function", "function": {"name": name}} for name in ("f", "g", "h")]
NAMED = {"type": "function", "function": {"name": "g"}}
HISTORY = [
    {
        "role": "assistant",
        "tool_calls": [{"id": "c", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
    },
    {"role": "tool", "tool_call_id": "c", "content": "1"},
]
IMAGE = {"type": "image_url", "image_url": {"url": "https://host/a.png"}}
WITH_IMAGES = [{"role": "user", "content": [{"type": "text", "text": "a"}, IMAGE, IMAGE]}]
OBJECT = {"type": "object", "properties": {}, "additionalProperties": False, "required": []}


def schema(*, strict: bool) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": {"name": "n", "schema": OBJECT, "strict": strict}}


@pytest.mark.parametrize(
    ("members", "features", "guarantees"),
    [
        ({}, [], []),
        ({"temperature": 1, "tools": [], "response_format": {"type": "text"}}, [], []),
        ({"tools": TOOLS}, ["tools"], ["tool_choice_auto_faithful"]),
        ({"tools": TOOLS, "tool_choice": "auto"}, ["tools"], ["tool_choice_auto_faithful"]),
        ({"tools": TOOLS, "tool_choice": "none"}, [], []),
        ({"tools": TOOLS, "tool_choice": "required"}, ["tools"], ["tool_choice_enforced"]),
        ({"tools": TOOLS, "tool_choice": NAMED}, ["tools"], ["tool_choice_enforced"]),
        ({"tools": TOOLS, "parallel_tool_calls": False}, ["tools"], ["tool_choice_auto_faithful"]),
        ({"messages": HISTORY}, ["tools"], []),
        ({"messages": HISTORY, "tools": TOOLS, "tool_choice": "none"}, ["tools"], []),
        ({"response_format": {"type": "json_object"}}, ["json_object"], ["json_object_enforced"]),
        ({"response_format": schema(strict=True)}, ["json_schema"], ["json_schema_enforced"]),
        ({"response_format": schema(strict=False)}, ["json_schema"], []),
        ({"messages": WITH_IMAGES}, ["images"], []),
        ({"reasoning_effort": "medium"}, [], []),
        ({"reasoning_effort": "none"}, ["reasoning"], []),
        ({"reasoning_effort": "high"}, ["reasoning"], []),
        (
            {"reasoning_effort": "low", "tools": TOOLS, "response_format": {"type": "json_object"}},
            ["json_object", "reasoning", "tools"],
            ["json_object_enforced", "tool_choice_auto_faithful"],
        ),
    ],
    ids=lambda value: str(value)[:70],
)
def test_strict_adds_guarantees_to_the_features_and_best_effort_does_not(
    chat: Any, members: dict[str, Any], features: list[str], guarantees: list[str]
) -> None:
    strict = tuple(sorted([*features, *guarantees, "prompt_overflow_refused"]))
    assert required_chat_features(chat(**members)) == strict
    assert required_chat_features(chat(**members, horde={"conformance": "best_effort"})) == tuple(features)


@pytest.mark.parametrize(
    ("members", "tools", "temperature"),
    [
        ({}, 0, None),
        ({"temperature": 0.3}, 0, None),
        ({"tools": TOOLS}, 3, 1.0),
        ({"tools": TOOLS, "temperature": 0.3}, 3, 0.3),
        ({"tools": TOOLS, "tool_choice": NAMED}, 1, 1.0),
        ({"tools": TOOLS, "tool_choice": "none"}, 0, None),
    ],
)
def test_only_tools_that_reach_the_worker_count(
    chat: Any, members: dict[str, Any], tools: int, temperature: float | None
) -> None:
    requirements = requirements_of(chat(**members), max_length=5, max_context_length=50)
    assert (requirements.tools, requirements.tools_temperature) == (tools, temperature)


def test_requirements_carry_sizes_images_and_selection(chat: Any) -> None:
    selection = {"workers": ["w"], "worker_blacklist": True, "trusted_workers": True, "validated_workers": True}
    request = chat(messages=WITH_IMAGES, horde=selection | {"nsfw": True, "conformance": "best_effort"})
    assert requirements_of(request, max_length=5, max_context_length=50) == Requirements(
        is_chat=True,
        models=("m",),
        features=("images",),
        images=2,
        max_length=5,
        max_context_length=50,
        workers=("w",),
        worker_blacklist=True,
        trusted_workers=True,
        validated_workers=True,
        nsfw=True,
    )


def test_sizes_are_raised_to_the_end_of_their_bucket(required: Any) -> None:
    asked = required(
        max_length=513, max_context_length=4096, images=3, tools=1, tools_temperature=0.7, features=("tools",)
    )
    assert class_of(asked) == required(
        max_length=1024, max_context_length=4096, images=4, tools=1, tools_temperature=1.0, features=("tools",)
    )


def test_equal_requirements_have_equal_digests_and_others_do_not(required: Any) -> None:
    assert required().digest() == required().digest()
    assert required().digest() != required(nsfw=True).digest()
    assert class_of(required(max_length=300)).digest() == class_of(required(max_length=400)).digest()


SIZES = st.builds(
    lambda **sizes: Requirements(is_chat=True, models=("m",), **sizes),
    max_length=st.integers(1, 10_000),
    max_context_length=st.integers(1, 200_000),
    images=st.integers(0, 20),
    tools=st.integers(0, 128),
    tools_temperature=st.none() | st.floats(0, 2),
)
LIMITS = st.dictionaries(
    st.sampled_from(["max_images", "max_tools", "max_length", "max_context_length", "tools_max_temperature"]),
    st.floats(0, 2) | st.integers(0, 200_000),
)
DECLARATIONS = st.builds(
    lambda limits: Declaration(
        name="w",
        chat_jobs=True,
        model_id="m",
        chat_limits={name: float(value) for name, value in limits.items()},
        image_transports=frozenset({"url"}),
        max_context_length=200_000,
        max_length=10_000,
    ),
    LIMITS,
)


@given(SIZES)
def test_stored_requirements_come_back_exactly(requirements: Requirements) -> None:
    assert Requirements.from_stored(orjson.loads(orjson.dumps(requirements.stored()))) == requirements


@given(SIZES)
def test_a_class_is_its_own_class_and_never_smaller(requirements: Requirements) -> None:
    klass = class_of(requirements)
    assert class_of(klass) == klass
    assert all(upper >= asked for (_, asked), (_, upper) in zip(requirements.asked(), klass.asked(), strict=True))


@given(SIZES, DECLARATIONS)
def test_a_worker_that_covers_a_request_may_cover_its_class(requirements: Requirements, worker: Declaration) -> None:
    if covers(worker, requirements).complete:
        assert may_cover(worker, class_of(requirements))


@pytest.mark.parametrize(
    ("limits", "may"),
    [
        ({"max_length": 512}, False),
        ({"max_length": 513}, True),
        ({"max_length": 1023}, True),
        ({"max_length": 1024}, True),
        ({"max_length": 1024, "max_tools": 2}, False),
        ({"max_length": 1024, "max_tools": 3}, True),
        ({"max_length": 1024, "tools_max_temperature": 0.5}, False),
        ({"max_length": 1024, "tools_max_temperature": 0.6}, True),
    ],
)
def test_a_limit_inside_the_bucket_still_serves_its_smaller_requests(
    declared: Any, required: Any, limits: dict[str, float], may: bool
) -> None:
    klass = class_of(required(max_length=700, tools=4, tools_temperature=0.9))
    assert may_cover(declared(chat_limits=limits), klass) is may


@pytest.mark.parametrize("members", [{"model_id": "other"}, {"chat_features": []}])
def test_a_class_needs_the_model_and_the_features_whole(declared: Any, required: Any, members: dict[str, Any]) -> None:
    assert not may_cover(declared(**members), class_of(required()))
