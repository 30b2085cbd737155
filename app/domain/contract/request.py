"""One chat request: the value that is stored, and how a body becomes one (contract C1)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self

from app.domain.contract import refusals
from app.domain.contract.drop_table import without_no_ops
from app.domain.contract.fields import JsonObject, as_array, as_string, without_nulls
from app.domain.contract.horde_options import HordeOptions
from app.domain.contract.openai_guards import apply_openai_guards
from app.domain.contract.readers import LABELS, NATIVE_KEYS, READERS, UNSUPPORTED_KEYS
from app.domain.contract.tools import ToolChoice
from app.domain.errors import ContractRefusal
from app.domain.json_boundary import NOT_JSON

MAX_MODELS = 16
MAX_MODEL_NAME = 255

_NO_MODEL = "you must provide a model parameter"
_PLAIN_FIELDS = (
    "temperature",
    "top_p",
    "presence_penalty",
    "frequency_penalty",
    "stop",
    "seed",
    "tools",
    "response_format",
    "reasoning_effort",
    "stream",
    "operation_key",
    "dry_run",
)


class Face(StrEnum):
    """Where the body came in."""

    NATIVE = "native"
    FRONT = "front"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatRequest:
    """What the requester asked for, normalised; a field at its default counts as left out.

    `max_tokens` is None when the client left it out. `reasoning_effort` is None when it was
    left out or `medium`. `response_format` is None for text. `tool_choice` and
    `parallel_tool_calls` are None only without tools.
    """

    models: tuple[str, ...]
    messages: list[JsonObject]
    temperature: float = 1.0
    top_p: float = 1.0
    presence_penalty: float = 0.0
    frequency_penalty: float = 0.0
    stop: tuple[str, ...] = ()
    seed: int | None = None
    max_tokens: int | None = None
    tools: list[JsonObject] | None = None
    tool_choice: ToolChoice | None = None
    parallel_tool_calls: bool | None = None
    response_format: JsonObject | None = None
    reasoning_effort: str | None = None
    stream: bool = False
    include_usage: bool = False
    labels: JsonObject
    horde: HordeOptions
    operation_key: str | None = None
    dry_run: bool = False

    def stored(self) -> JsonObject:
        """The request as JSON, without what only concerns its submit (operation key, dry run)."""
        data: JsonObject = {field.name: getattr(self, field.name) for field in fields(self)}
        for name in NATIVE_KEYS:
            del data[name]
        return data | {"models": list(self.models), "stop": list(self.stop), "horde": self.horde.stored()}

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """A request from its JSON."""
        read = dict(data)
        read["models"] = tuple(data["models"])
        read["stop"] = tuple(data["stop"])
        read["horde"] = HordeOptions.from_stored(data["horde"])
        return cls(**read)


def parse_chat_request(body: Mapping[str, object], face: Face) -> ChatRequest:
    """The request in a body.

    Raises ContractRefusal for the first fault in OpenAI's order of checks: one a response.
    """
    given = without_nulls(without_no_ops(body) if face is Face.FRONT else body)
    models = _parse_models(given)
    if "messages" not in given:
        raise refusals.missing("messages")
    _refuse_unknown_keys(given, face)
    read: dict[str, Any] = {}
    for key, member in READERS.items():
        if key in given:
            read[key] = member.read(given[key], read)
    request = _assembled(models, read)
    if request.horde.openai_guards:
        apply_openai_guards(request.messages, request.response_format)
    if face is Face.FRONT:
        _refuse_colons(models)
    return request


def _assembled(models: tuple[str, ...], read: Mapping[str, Any]) -> ChatRequest:
    has_tools = bool(read.get("tools"))
    return ChatRequest(
        models=models,
        messages=read["messages"],
        max_tokens=read.get("max_tokens", read.get("max_completion_tokens")),
        tool_choice=read.get("tool_choice", "auto") if has_tools else None,
        parallel_tool_calls=read.get("parallel_tool_calls", True) if has_tools else None,
        include_usage=read.get("stream_options", False),
        horde=read.get("horde", HordeOptions()),
        labels={name: read[name] for name in LABELS if name in read},
        **{name: read[name] for name in _PLAIN_FIELDS if name in read},
    )


def _parse_models(given: Mapping[str, object]) -> tuple[str, ...]:
    """The acceptable models, sorted: their order means nothing (contract C1)."""
    if "models" in given:
        return _parse_model_list(given)
    model = given.get("model", "")
    if not isinstance(model, str):
        raise ContractRefusal(NOT_JSON)
    if not model:
        raise refusals.refusal(_NO_MODEL, None)
    return (as_string(model, "model", most=MAX_MODEL_NAME),)


def _parse_model_list(given: Mapping[str, object]) -> tuple[str, ...]:
    if "model" in given:
        raise refusals.refusal("Invalid value for 'models': give either 'model' or 'models', not both.", "models")
    items = as_array(given["models"], "models", "an array of strings", most=MAX_MODELS)
    if not items:
        raise refusals.empty_array("models")
    names = [as_string(item, f"models[{index}]", most=MAX_MODEL_NAME) for index, item in enumerate(items)]
    if not all(names):
        raise refusals.refusal(_NO_MODEL, "models")
    if len(set(names)) < len(names):
        raise refusals.refusal("Invalid value for 'models': each model may be named once.", "models")
    return tuple(sorted(names))


def _refuse_unknown_keys(given: Mapping[str, object], face: Face) -> None:
    for key in given:
        if key in UNSUPPORTED_KEYS:
            raise refusals.unsupported_key(key, UNSUPPORTED_KEYS[key])
        foreign = key in NATIVE_KEYS and face is Face.FRONT
        if foreign or (key not in READERS and key not in {"model", "models"}):
            raise refusals.unknown_key(key)


def _refuse_colons(models: tuple[str, ...]) -> None:
    """The front reserves the colon, so no model can have such a name (contract C1)."""
    for model in models:
        if ":" in model:
            raise refusals.model_not_found(model)
