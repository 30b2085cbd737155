"""The `horde` object: what a client may ask of the horde beyond OpenAI's body (contract C2)."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, Self, cast

from app.domain.contract.fields import (
    INT32_MAX,
    as_array,
    as_boolean,
    as_choice,
    as_integer,
    as_number,
    as_object,
    as_string,
    refuse_unknown_keys,
)

Conformance = Literal["strict", "best_effort"]
AvailabilityMode = Literal["wait", "fail_fast"]
ContextFit = Literal["refuse", "truncate_oldest"]

MAX_WORKERS = 5
"""Workers that a request may name (wire reference 2.1)."""

_MAX_WORKER_ID = 255
_MAX_KUDOS = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class HordeOptions:
    """Options of one request, each at its default unless the client set it."""

    conformance: Conformance = "strict"
    availability_mode: AvailabilityMode = "wait"
    max_kudos: float | None = None
    include_reasoning: bool = True
    context_fit: ContextFit = "refuse"
    openai_guards: bool = False
    workers: tuple[str, ...] = ()
    worker_blacklist: bool = False
    trusted_workers: bool = False
    validated_workers: bool = False
    slow_workers: bool = True
    allow_downgrade: bool = False
    nsfw: bool = False
    max_context_length: int | None = None

    @property
    def strict(self) -> bool:
        """Whether the reply must follow the contract exactly."""
        return self.conformance == "strict"

    def stored(self) -> dict[str, object]:
        """The options as JSON."""
        return {field.name: getattr(self, field.name) for field in fields(self)} | {"workers": list(self.workers)}

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """Options from their JSON."""
        return cls(**{**data, "workers": tuple(data["workers"])})


KEYS = frozenset(field.name for field in fields(HordeOptions))
FLAGS = (
    "include_reasoning",
    "openai_guards",
    "worker_blacklist",
    "trusted_workers",
    "validated_workers",
    "slow_workers",
    "allow_downgrade",
    "nsfw",
)
"""The members that are true or false."""


CHOICES: dict[str, tuple[str, str]] = {
    "conformance": ("strict", "best_effort"),
    "availability_mode": ("wait", "fail_fast"),
    "context_fit": ("refuse", "truncate_oldest"),
}
"""The members that are one of two words, of which the first is the default."""


def parse_horde_options(value: object) -> HordeOptions:
    """The options.

    Raises ContractRefusal; an unknown key is UnsupportedChatParameter.
    """
    given = as_object(value, "horde")
    refuse_unknown_keys(given, KEYS, "horde")
    flags = {name: as_boolean(given[name], f"horde.{name}") for name in FLAGS if name in given}
    max_kudos = given.get("max_kudos")
    max_context_length = given.get("max_context_length")
    return HordeOptions(
        conformance=cast("Conformance", _choice(given, "conformance")),
        availability_mode=cast("AvailabilityMode", _choice(given, "availability_mode")),
        context_fit=cast("ContextFit", _choice(given, "context_fit")),
        max_kudos=None if max_kudos is None else as_number(max_kudos, "horde.max_kudos", 0, _MAX_KUDOS),
        max_context_length=None
        if max_context_length is None
        else as_integer(max_context_length, "horde.max_context_length", 1, INT32_MAX),
        workers=_parse_workers(given.get("workers", [])),
        **flags,
    )


def _choice(given: Mapping[str, object], name: str) -> str:
    return as_choice(given.get(name, CHOICES[name][0]), f"horde.{name}", CHOICES[name])


def accepted_by(name: str) -> str:
    """What a member accepts, in words."""
    if name in FLAGS:
        return "true or false"
    if name in CHOICES:
        return " or ".join(CHOICES[name])
    return {
        "max_kudos": f"number, 0 to {_MAX_KUDOS}",
        "max_context_length": f"integer, 1 to {INT32_MAX}",
        "workers": f"up to {MAX_WORKERS} ids or names",
    }[name]


def _parse_workers(value: object) -> tuple[str, ...]:
    items = as_array(value, "horde.workers", "an array of strings", most=MAX_WORKERS)
    return tuple(as_string(item, f"horde.workers[{index}]", most=_MAX_WORKER_ID) for index, item in enumerate(items))
