"""What a worker says of itself on every pop (contract C4; wire reference 2.4)."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from typing import Any, Self
from unicodedata import category

from app.domain.errors import BadRequest, InvalidPriorityUsername
from app.domain.refused_words import normal

MAX_THREADS = 50
MAX_BRIDGE_AGENT = 1000
MAX_MODELS = 200
"""Entries of a worker's longest lists that are kept (wire reference 2.4); the rest is ignored."""

MAX_AMOUNT = 20
"""Generations of one request that a worker may take at once (wire reference 2.4)."""

MAX_WARNINGS = 20
"""Warnings of one declaration; an operator reads the first ones."""

_INT32_MAX = 2**31 - 1
_LONGEST_ECHO = 100
_LONGEST_ID = 18
_LISTS = ("models", "priority_usernames", "blacklist", "softprompts")
_SETS = ("features", "image_transports")


_UNREADABLE = frozenset({"Cc", "Cs"})
"""Unicode categories of control characters and half surrogates."""


class Feature(StrEnum):
    """A worker that declares it acts on that input."""

    TOOLS = "tools"
    JSON_OBJECT = "json_object"
    JSON_SCHEMA = "json_schema"
    IMAGES = "images"
    REASONING = "reasoning"


class Guarantee(StrEnum):
    """A worker that declares it follows that part of the contract exactly."""

    PROMPT_OVERFLOW_REFUSED = "prompt_overflow_refused"
    TOOL_CHOICE_ENFORCED = "tool_choice_enforced"
    TOOL_CHOICE_AUTO_FAITHFUL = "tool_choice_auto_faithful"
    JSON_OBJECT_ENFORCED = "json_object_enforced"
    JSON_SCHEMA_ENFORCED = "json_schema_enforced"
    SINGLE_TOOL_CALL_ENFORCED = "single_tool_call_enforced"


class Limit(StrEnum):
    """A number that the worker cannot exceed."""

    MAX_CONTEXT_LENGTH = "max_context_length"
    MAX_LENGTH = "max_length"
    MAX_IMAGES = "max_images"
    MAX_TOOLS = "max_tools"
    TOOLS_MAX_TEMPERATURE = "tools_max_temperature"


class Transport(StrEnum):
    """A way in which images, or a whole conversation, can reach the worker."""

    URL = "url"
    BASE64 = "base64"
    MESSAGES_URL = "messages_url"


FEATURE_NAMES = frozenset(Feature) | frozenset(Guarantee)
"""What `chat_features` may list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Declaration:
    """One worker's declaration; names that the horde does not know are left out."""

    name: str
    chat_jobs: bool = False
    prompt_jobs: bool = True
    model_id: str | None = None
    models: tuple[str, ...] = ()
    features: frozenset[str] = frozenset()
    chat_limits: dict[str, float]
    image_transports: frozenset[str] = frozenset()
    max_length: int = 512
    max_context_length: int = 2048
    threads: int = 1
    bridge_agent: str = "unknown:0:unknown"
    nsfw: bool = True
    priority_usernames: tuple[str, ...] = ()
    blacklist: tuple[str, ...] = ()
    softprompts: tuple[str, ...] = ()
    amount: int = 1

    @property
    def priority_ids(self) -> tuple[int, ...]:
        """The accounts behind `priority_usernames`."""
        return tuple(int(name.rpartition("#")[2]) for name in self.priority_usernames)

    @property
    def served(self) -> tuple[str, ...]:
        """Every model that requests may name to reach this worker, its chat model first."""
        chat = (self.model_id,) if self.chat_jobs and self.model_id else ()
        return tuple(dict.fromkeys((*chat, *(self.models if self.prompt_jobs else ()))))

    def limit(self, name: str) -> float | None:
        """A limit of chat jobs; None when there is none.

        The two lengths fall back to the declaration's top level (details D2).
        """
        if name in self.chat_limits:
            return self.chat_limits[name]
        return self.prompt_limit(name)

    def prompt_limit(self, name: str) -> float | None:
        """A limit of text jobs, which is one of the top level; None when there is none."""
        if name == Limit.MAX_LENGTH:
            return self.max_length
        return self.max_context_length if name == Limit.MAX_CONTEXT_LENGTH else None

    def stored(self) -> dict[str, object]:
        """The declaration as JSON."""
        data: dict[str, object] = {field.name: getattr(self, field.name) for field in fields(self)}
        return data | {
            **{name: list(getattr(self, name)) for name in _LISTS},
            **{name: sorted(getattr(self, name)) for name in _SETS},
        }

    @classmethod
    def from_stored(cls, data: Mapping[str, Any]) -> Self:
        """A declaration from its JSON."""
        read = dict(data)
        for name in _LISTS:
            read[name] = tuple(data.get(name, ()))
        for name in _SETS:
            read[name] = frozenset(data[name])
        return cls(**read)


def parse_declaration(body: Mapping[str, object]) -> tuple[Declaration, tuple[str, ...]]:
    """The declaration in a pop's body, and a warning for each name that the horde does not know.

    Keys that it does not use are ignored, as existing bridges need. Raises BadRequest naming
    the key whose value cannot be used.
    """
    given = {key: value for key, value in body.items() if value is not None}
    features, warnings = _known_names(given, "chat_features", FEATURE_NAMES)
    transports, transport_warnings = _known_names(given, "image_transports", frozenset(Transport))
    limits, limit_warnings = _chat_limits(given)
    declaration = Declaration(
        name=_name(given),
        chat_jobs=_flag(given, "chat_jobs", default=False),
        prompt_jobs=_flag(given, "prompt_jobs", default=True),
        model_id=_model_id(given),
        models=_strings(given, "models")[:MAX_MODELS],
        features=features,
        chat_limits=limits,
        image_transports=transports,
        max_length=_integer(given, "max_length", 512),
        max_context_length=_integer(given, "max_context_length", 2048),
        threads=_integer(given, "threads", 1, MAX_THREADS),
        bridge_agent=_text(given, "bridge_agent", MAX_BRIDGE_AGENT) or "unknown:0:unknown",
        nsfw=_flag(given, "nsfw", default=True),
        priority_usernames=_priority_usernames(given),
        blacklist=_blacklist(given),
        softprompts=_strings(given, "softprompts")[:MAX_MODELS],
        amount=_integer(given, "amount", 1, MAX_AMOUNT),
    )
    if declaration.chat_jobs and declaration.model_id is None:
        raise BadRequest("'model_id' is required with 'chat_jobs': name the model that the backend has loaded.")
    found = (*_model_warnings(declaration), *warnings, *limit_warnings, *transport_warnings)
    return declaration, found[:MAX_WARNINGS]


def _priority_usernames(given: Mapping[str, object]) -> tuple[str, ...]:
    names = _strings(given, "priority_usernames")[:MAX_MODELS]
    for name in names:
        alias, _, number = name.rpartition("#")
        if not alias or not (number.isascii() and number.isdigit() and len(number) <= _LONGEST_ID):
            raise InvalidPriorityUsername(
                f"'priority_usernames': '{name[:_LONGEST_ECHO]}' is no account. Write it as alias#id."
            )
    return names


def _blacklist(given: Mapping[str, object]) -> tuple[str, ...]:
    """The refused words in the form that is compared; those that hold no letter refuse nothing."""
    words = (normal(word[:_LONGEST_ECHO]) for word in _strings(given, "blacklist")[:MAX_MODELS])
    return tuple(dict.fromkeys(word for word in words if word))


def _name(given: Mapping[str, object]) -> str:
    name = _text(given, "name", 100)
    if not name:
        raise BadRequest("'name' is required: give the worker a name.")
    return name


def _model_id(given: Mapping[str, object]) -> str | None:
    return _text(given, "model_id", 255) or None


def _model_warnings(declaration: Declaration) -> tuple[str, ...]:
    if declaration.model_id is None or ":" not in declaration.model_id:
        return ()
    advice = f"declare '{declaration.model_id.replace(':', '-')}' instead."
    return (f"model_id: '{declaration.model_id}' holds a colon, so OpenAI clients cannot ask for it; {advice}",)


def _known_names(
    given: Mapping[str, object], key: str, known: Collection[str]
) -> tuple[frozenset[str], tuple[str, ...]]:
    names = _strings(given, key)
    warnings = tuple(_unknown(key, name) for name in dict.fromkeys(names) if name not in known)
    return frozenset(name for name in names if name in known), warnings


def _chat_limits(given: Mapping[str, object]) -> tuple[dict[str, float], tuple[str, ...]]:
    value = given.get("chat_limits", {})
    if not isinstance(value, Mapping):
        raise BadRequest("'chat_limits' must be an object of numbers.")
    known = frozenset(Limit)
    warnings = tuple(_unknown("chat_limits", name) for name in value if name not in known)
    limits = {
        name: _limit(f"chat_limits.{name}", number)
        for name, number in value.items()
        if name in known and number is not None
    }
    return limits, warnings


def _limit(key: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= _INT32_MAX:
        raise BadRequest(f"'{key}' must be a number from 0 to {_INT32_MAX}.")
    return float(value)


def _unknown(key: str, name: str) -> str:
    return f"{key}: '{name[:_LONGEST_ECHO]}' is not known and was ignored."


def _text(given: Mapping[str, object], key: str, most: int) -> str:
    value = given.get(key, "")
    if not isinstance(value, str) or len(value) > most:
        raise BadRequest(f"'{key}' must be a string of at most {most} characters.")
    return _readable(key, value)


def _strings(given: Mapping[str, object], key: str) -> tuple[str, ...]:
    value = given.get(key, [])
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise BadRequest(f"'{key}' must be a list of strings.")
    return tuple(_readable(key, item) for item in value)


def _readable(key: str, value: str) -> str:
    """The value, if people can read it: names are shown and stored, so they are refused and not mended."""
    if any(category(character) in _UNREADABLE for character in value):
        raise BadRequest(f"'{key}' must hold no control characters and no broken text.")
    return value


def _integer(given: Mapping[str, object], key: str, default: int, most: int = _INT32_MAX) -> int:
    value = given.get(key, default)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= most:
        raise BadRequest(f"'{key}' must be a whole number from 1 to {most}.")
    return value


def _flag(given: Mapping[str, object], key: str, *, default: bool) -> bool:
    value = given.get(key, default)
    if not isinstance(value, bool):
        raise BadRequest(f"'{key}' must be true or false.")
    return value
