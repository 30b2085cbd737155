"""A worker's declaration: defaults, warnings, refusals and limits."""

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.capabilities import Declaration, Feature, Guarantee, Limit, Transport, parse_declaration
from app.domain.declaration import MAX_WARNINGS
from app.domain.errors import BadRequest


def test_an_existing_text_bridge_declares_only_its_text_side() -> None:
    body = {
        "name": "bridge",
        "models": ["koboldcpp/Demo-8B"],
        "max_length": 512,
        "max_context_length": 4096,
        "priority_usernames": ["a#1"],
        "softprompts": [],
        "bridge_agent": "KoboldCppEmbedWorker:2:url",
        "amount": 1,
    }
    declaration, warnings = parse_declaration(body)
    assert declaration == Declaration(
        name="bridge",
        models=("koboldcpp/Demo-8B",),
        chat_limits={},
        max_length=512,
        max_context_length=4096,
        priority_usernames=("a#1",),
        bridge_agent="KoboldCppEmbedWorker:2:url",
    )
    assert not declaration.chat_jobs
    assert declaration.prompt_jobs
    assert warnings == ()


def test_absent_members_have_the_wire_references_defaults() -> None:
    declaration, _ = parse_declaration({"name": "w", "threads": None, "nsfw": None})
    assert (declaration.max_length, declaration.max_context_length, declaration.threads) == (512, 2048, 1)
    assert declaration.bridge_agent == "unknown:0:unknown"
    assert declaration.nsfw


def test_a_chat_worker_declares_features_limits_and_transports() -> None:
    declaration, warnings = parse_declaration(
        {
            "name": "w",
            "chat_jobs": True,
            "prompt_jobs": False,
            "model_id": "m",
            "chat_features": [*Feature, *Guarantee],
            "chat_limits": {"max_length": 100, "max_images": 2, "tools_max_temperature": 0.7, "max_tools": None},
            "image_transports": list(Transport),
            "threads": 50,
        }
    )
    assert warnings == ()
    assert declaration.features == {*Feature, *Guarantee}
    assert declaration.chat_limits == {"max_length": 100.0, "max_images": 2.0, "tools_max_temperature": 0.7}
    assert declaration.image_transports == {"url", "base64", "messages_url"}
    assert not declaration.prompt_jobs


def test_unknown_names_are_ignored_with_a_warning_each() -> None:
    declaration, warnings = parse_declaration(
        {
            "name": "w",
            "chat_jobs": True,
            "model_id": "org/m:q4",
            "chat_features": ["tool", "tools", "tool"],
            "chat_limits": {"max_contextlength": "many"},
            "image_transports": ["ftp"],
        }
    )
    assert warnings == (
        "model_id: 'org/m:q4' holds a colon, so OpenAI clients cannot ask for it; declare 'org/m-q4' instead.",
        "chat_features: 'tool' is not known and was ignored.",
        "chat_limits: 'max_contextlength' is not known and was ignored.",
        "image_transports: 'ftp' is not known and was ignored.",
    )
    assert declaration.features == {"tools"}
    assert declaration.chat_limits == {}
    assert declaration.image_transports == frozenset()


def test_warnings_are_bounded() -> None:
    _, warnings = parse_declaration({"name": "w", "chat_features": [f"x{number}" * 1000 for number in range(1000)]})
    assert len(warnings) == MAX_WARNINGS
    assert max(map(len, warnings)) < 200


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({"name": None}, "'name' is required: give the worker a name."),
        ({"name": ""}, "'name' is required: give the worker a name."),
        ({"name": 5}, "'name' must be a string of at most 100 characters."),
        ({"name": "w" * 101}, "'name' must be a string of at most 100 characters."),
        (
            {"chat_jobs": True},
            "'model_id' is required with 'chat_jobs': name the model that the backend has loaded.",
        ),
        (
            {"chat_jobs": True, "model_id": ""},
            "'model_id' is required with 'chat_jobs': name the model that the backend has loaded.",
        ),
        ({"chat_jobs": 1}, "'chat_jobs' must be true or false."),
        ({"prompt_jobs": "no"}, "'prompt_jobs' must be true or false."),
        ({"nsfw": 1}, "'nsfw' must be true or false."),
        ({"model_id": 5}, "'model_id' must be a string of at most 255 characters."),
        ({"models": "m"}, "'models' must be a list of strings."),
        ({"models": [1]}, "'models' must be a list of strings."),
        ({"chat_features": {"tools": True}}, "'chat_features' must be a list of strings."),
        ({"image_transports": "url"}, "'image_transports' must be a list of strings."),
        ({"priority_usernames": [None]}, "'priority_usernames' must be a list of strings."),
        ({"chat_limits": [1]}, "'chat_limits' must be an object of numbers."),
        ({"chat_limits": {"max_length": "5"}}, "'chat_limits.max_length' must be a number from 0 to 2147483647."),
        ({"chat_limits": {"max_tools": -1}}, "'chat_limits.max_tools' must be a number from 0 to 2147483647."),
        ({"chat_limits": {"max_tools": True}}, "'chat_limits.max_tools' must be a number from 0 to 2147483647."),
        ({"threads": 0}, "'threads' must be a whole number from 1 to 50."),
        ({"threads": 51}, "'threads' must be a whole number from 1 to 50."),
        ({"threads": True}, "'threads' must be a whole number from 1 to 50."),
        ({"max_length": 1.5}, "'max_length' must be a whole number from 1 to 2147483647."),
        ({"max_context_length": 0}, "'max_context_length' must be a whole number from 1 to 2147483647."),
        ({"bridge_agent": "a" * 1001}, "'bridge_agent' must be a string of at most 1000 characters."),
    ],
    ids=lambda value: str(value)[:50],
)
def test_a_value_that_cannot_be_used_is_refused_by_its_key(members: dict[str, Any], message: str) -> None:
    with pytest.raises(BadRequest) as caught:
        parse_declaration({"name": "w"} | members)
    assert caught.value.message == message


@pytest.mark.parametrize(
    ("name", "chat", "text"),
    [
        (Limit.MAX_LENGTH, 300.0, 512),
        (Limit.MAX_CONTEXT_LENGTH, 2048, 2048),
        (Limit.MAX_IMAGES, 2.0, None),
        (Limit.MAX_TOOLS, None, None),
        (Limit.TOOLS_MAX_TEMPERATURE, None, None),
    ],
)
def test_a_chat_limit_falls_back_to_the_top_level_for_lengths_alone(
    declared: Any, name: Limit, chat: float | None, text: float | None
) -> None:
    declaration = declared(chat_limits={"max_length": 300, "max_images": 2})
    assert declaration.limit(name) == chat
    assert declaration.prompt_limit(name) == text


READABLE = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=5)


@given(
    st.fixed_dictionaries(
        {"name": READABLE, "model_id": READABLE},
        optional={
            "chat_jobs": st.booleans(),
            "chat_features": st.lists(st.sampled_from([*Feature, *Guarantee])),
            "chat_limits": st.dictionaries(
                st.sampled_from([str(name) for name in Limit]), st.floats(0, 1e6) | st.integers(0, 10**6)
            ),
            "image_transports": st.lists(st.sampled_from(list(Transport))),
            "models": st.lists(READABLE),
            "threads": st.integers(1, 50),
            "nsfw": st.booleans(),
        },
    )
)
def test_a_stored_declaration_comes_back_exactly(body: dict[str, Any]) -> None:
    declaration, _ = parse_declaration(body)
    assert Declaration.from_stored(orjson.loads(orjson.dumps(declaration.stored()))) == declaration


@pytest.mark.parametrize("broken", ["a\x00", "\x07bell", "\ud800", "line\nbreak", "\x7f"])
@pytest.mark.parametrize("key", ["name", "model_id", "bridge_agent"])
def test_a_text_that_people_cannot_read_is_refused(key: str, broken: str) -> None:
    with pytest.raises(BadRequest, match=key):
        parse_declaration({"name": "box", "models": ["m"], "model_id": "m"} | {key: broken})


@pytest.mark.parametrize("key", ["models", "priority_usernames"])
def test_a_list_with_a_text_that_people_cannot_read_is_refused(key: str) -> None:
    with pytest.raises(BadRequest, match=key):
        parse_declaration({"name": "box", "models": ["m"]} | {key: ["good", "b\x00d"]})


@pytest.mark.parametrize("name", ["Ann's box", "Müllers Kiste", "箱", "box 🐎"])
def test_a_name_in_any_script_is_kept(name: str) -> None:
    assert parse_declaration({"name": name, "models": ["m"]})[0].name == name
