"""What a request requires of a worker, exactly and by class (contract C4, details D11).

A small value without messages, stored on the request's row, so that routing never loads a
conversation. Which workers a request selects or trusts is carried here and judged elsewhere.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import ceil
from typing import Any, Self

from app.domain.contract import ChatRequest
from app.domain.contract.messages import has_tool_history, image_count
from app.domain.contract.response_format import strict_schema
from app.domain.declaration import Feature, Guarantee, Limit
from app.domain.json_boundary import digest_of
from app.domain.narrowing import tools_for_worker

TEMPERATURE_STEP = 0.5
"""Width of a class's bucket of temperatures."""

_LISTS = ("models", "features", "workers", "refused_words")


@dataclass(frozen=True, slots=True, kw_only=True)
class Requirements:
    """What a worker must be able to do for one request.

    `features` holds features and guarantees, sorted. `images` and `tools` are counts of what
    reaches the worker; `tools_temperature` is the temperature when tools reach it, else None.
    `refused_words` are words of the prompt that some worker refuses.
    """

    is_chat: bool
    models: tuple[str, ...]
    features: tuple[str, ...] = ()
    images: int = 0
    tools: int = 0
    tools_temperature: float | None = None
    max_length: int
    max_context_length: int
    workers: tuple[str, ...] = ()
    worker_blacklist: bool = False
    trusted_workers: bool = False
    validated_workers: bool = False
    nsfw: bool = False
    slow_workers: bool = True
    softprompt: str | None = None
    refused_words: tuple[str, ...] = ()

    def asked(self) -> tuple[tuple[Limit, float], ...]:
        """Every limit that the request touches, with what it asks for."""
        asked: list[tuple[Limit, float]] = [
            (Limit.MAX_CONTEXT_LENGTH, self.max_context_length),
            (Limit.MAX_LENGTH, self.max_length),
        ]
        if self.images:
            asked.append((Limit.MAX_IMAGES, self.images))
        if self.tools:
            asked.append((Limit.MAX_TOOLS, self.tools))
        if self.tools_temperature is not None:
            asked.append((Limit.TOOLS_MAX_TEMPERATURE, self.tools_temperature))
        return tuple(asked)

    def stored(self) -> dict[str, object]:
        """The requirements as JSON."""
        data: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        return data | {name: list(getattr(self, name)) for name in _LISTS}

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """Requirements from their JSON."""
        return cls(**{**data, **{name: tuple(data.get(name, ())) for name in _LISTS}})

    def digest(self) -> str:
        """SHA-256 that is equal for equal requirements."""
        return digest_of(self.stored())


def required_chat_features(request: ChatRequest) -> tuple[str, ...]:
    """Features and, under strict, guarantees that the request requires, sorted (contract C4)."""
    needed: set[str] = set()
    tools, tool_choice = tools_for_worker(request)
    if tools or has_tool_history(request.messages):
        needed.add(Feature.TOOLS)
    if request.response_format is not None:
        needed.add(str(request.response_format["type"]))
    if image_count(request.messages):
        needed.add(Feature.IMAGES)
    if request.reasoning_effort is not None:
        needed.add(Feature.REASONING)
    if request.horde.strict:
        needed.add(Guarantee.PROMPT_OVERFLOW_REFUSED)
        needed |= _reply_guarantees(request)
        if tools:
            forced = tool_choice == "required"
            needed.add(Guarantee.TOOL_CHOICE_ENFORCED if forced else Guarantee.TOOL_CHOICE_AUTO_FAITHFUL)
    return tuple(sorted(str(name) for name in needed))


def _reply_guarantees(request: ChatRequest) -> set[str]:
    if request.response_format == {"type": "json_object"}:
        return {Guarantee.JSON_OBJECT_ENFORCED}
    return {Guarantee.JSON_SCHEMA_ENFORCED} if strict_schema(request.response_format) is not None else set()


def requirements_of(request: ChatRequest, *, max_length: int, max_context_length: int) -> Requirements:
    """The requirements of a chat request at these sizes."""
    tools, _ = tools_for_worker(request)
    options = request.horde
    return Requirements(
        is_chat=True,
        models=request.models,
        features=required_chat_features(request),
        images=image_count(request.messages),
        tools=len(tools),
        tools_temperature=request.temperature if tools else None,
        max_length=max_length,
        max_context_length=max_context_length,
        workers=options.workers,
        worker_blacklist=options.worker_blacklist,
        trusted_workers=options.trusted_workers,
        validated_workers=options.validated_workers,
        nsfw=options.nsfw,
        slow_workers=options.slow_workers,
    )


def class_of(requirements: Requirements) -> Requirements:
    """The class of a request: every size raised to the upper end of its bucket.

    Idempotent: a class is its own class.
    """
    temperature = requirements.tools_temperature
    return replace(
        requirements,
        max_length=upper_end(requirements.max_length),
        max_context_length=upper_end(requirements.max_context_length),
        images=upper_end(requirements.images),
        tools=upper_end(requirements.tools),
        tools_temperature=None if temperature is None else ceil(temperature / TEMPERATURE_STEP) * TEMPERATURE_STEP,
    )


def upper_end(size: int) -> int:
    """The smallest power of two that is not below `size`; 0 for 0."""
    return 1 << (size - 1).bit_length() if size > 0 else 0
