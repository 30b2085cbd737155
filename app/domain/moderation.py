"""The operator's filters over what a requester submits (contract C3, native API N6).

Everything submitted is screened, before anything of it is stored for a worker. A `block`
filter refuses it; a `replace` filter rewrites the messages, from which the flattened prompt is
made anew, so the two always say the same.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Any

import orjson

from app.domain.contract import ChatRequest
from app.domain.contract.fields import JsonObject
from app.domain.errors import CorruptPrompt
from app.domain.flattening import flatten
from app.domain.linear_regex import OPERATORS_BYTES, LinearRegex, compiled
from app.domain.text_request import TextRequest

_PROSE = frozenset({"description", "title"})
"""Members of a tool definition that people wrote; the others are names that the client matches on."""


class FilterKind(StrEnum):
    """What a filter does with text that it matches."""

    BLOCK = "block"
    REPLACE = "replace"


@dataclass(frozen=True, slots=True)
class Filter:
    """One filter. Case is ignored unless the pattern says `(?-i)`."""

    id: int
    kind: FilterKind
    pattern: str
    replacement: str = ""

    @property
    def regex(self) -> LinearRegex:
        """The pattern, compiled once a process.

        Raises UnusablePattern.
        """
        return compiled(self.pattern, ignore_case=True, most_bytes=OPERATORS_BYTES)


class Moderation:
    """The filters in force."""

    def __init__(self, filters: Iterable[Filter] = ()) -> None:
        chosen = list(filters)
        self._blocks = [each for each in chosen if each.kind is FilterKind.BLOCK]
        self._replacements = [each for each in chosen if each.kind is FilterKind.REPLACE]

    def matching(self, text: str) -> list[Filter]:
        """Every filter that matches a text."""
        return [each for each in (*self._blocks, *self._replacements) if each.regex.found_in(text)]

    def screened(self, chat: ChatRequest) -> ChatRequest:
        """A chat request as it may go on.

        Raises CorruptPrompt when a filter blocks it, or replacements leave nothing of it.
        """
        self._refuse_blocked(_everything(chat))
        if not self._replacements:
            return chat
        messages = [self._message(message) for message in chat.messages]
        if _has_words(chat.messages) and not _has_words(messages):
            raise _nothing_left()
        return replace(chat, messages=messages, tools=self._prose(chat.tools))

    def screened_text(self, text: TextRequest) -> TextRequest:
        """A text request as it may go on: the same rules, over its prompt and its stop sequences.

        Raises CorruptPrompt when a filter blocks it, or replacements leave nothing of it.
        """
        self._refuse_blocked("\n".join([text.prompt, *text.params.get("stop_sequence", ())]))
        if not self._replacements:
            return text
        prompt = self._rewritten(text.prompt)
        if text.prompt.strip() and not prompt.strip():
            raise _nothing_left()
        return replace(text, prompt=prompt)

    def _refuse_blocked(self, text: str) -> None:
        for each in self._blocks:
            if each.regex.found_in(text):
                raise CorruptPrompt(
                    f"The moderation of this horde refuses the text (filter {each.id}). Change it and send it again.",
                    metadata={"filter": each.id},
                )

    def _rewritten(self, text: str) -> str:
        for each in self._replacements:
            text = each.regex.replaced(text, each.replacement)
        return text

    def _message(self, message: JsonObject) -> JsonObject:
        rewritten = dict(message)
        content = message.get("content")
        if isinstance(content, str):
            rewritten["content"] = self._rewritten(content)
        elif isinstance(content, list):
            rewritten["content"] = [
                part | {"text": self._rewritten(part["text"])} if part["type"] == "text" else part for part in content
            ]
        calls = message.get("tool_calls")
        if isinstance(calls, list):
            rewritten["tool_calls"] = [self._call(call) for call in calls]
        return rewritten

    def _call(self, call: dict[str, Any]) -> JsonObject:
        """A call with its arguments rewritten value by value, so that they stay the JSON that they were."""
        arguments = call["function"]["arguments"]
        try:
            value = orjson.loads(arguments)
        except orjson.JSONDecodeError:
            rewritten = self._rewritten(arguments)
        else:
            changed = self._values(value)
            rewritten = arguments if changed == value else orjson.dumps(changed).decode()
        return call | {"function": call["function"] | {"arguments": rewritten}}

    def _values(self, value: Any) -> Any:
        if isinstance(value, str):
            return self._rewritten(value)
        if isinstance(value, list):
            return [self._values(item) for item in value]
        if isinstance(value, dict):
            return {key: self._values(item) for key, item in value.items()}
        return value

    def _prose(self, value: Any) -> Any:
        """Tool definitions with what people wrote in them rewritten."""
        if isinstance(value, list):
            return [self._prose(item) for item in value]
        if isinstance(value, dict):
            return {
                key: self._rewritten(item) if key in _PROSE and isinstance(item, str) else self._prose(item)
                for key, item in value.items()
            }
        return value


def _everything(chat: ChatRequest) -> str:
    """All text of a request that a model could be shown: the flattened conversation, names and schemas.

    A model reads the parts of a message in one piece, and strings in arguments without their
    escapes, so both stand here once more as it reads them.
    """
    names = [str(message["name"]) for message in chat.messages if "name" in message]
    schema = [] if chat.response_format is None else [orjson.dumps(chat.response_format).decode()]
    read = [text for message in chat.messages for text in _as_read(message)]
    return "\n".join([flatten(chat.messages, chat.tools), *names, *schema, *chat.stop, *read])


def _as_read(message: JsonObject) -> Iterable[str]:
    content = message.get("content")
    if isinstance(content, list):
        yield "".join(part["text"] for part in content if part["type"] == "text")
    calls = message.get("tool_calls")
    for call in calls if isinstance(calls, list) else ():
        yield from _strings_of(call["function"]["arguments"])


def _strings_of(arguments: str) -> Iterable[str]:
    try:
        open_values = [orjson.loads(arguments)]
    except orjson.JSONDecodeError:
        return
    while open_values:
        value = open_values.pop()
        if isinstance(value, str):
            yield value
        elif isinstance(value, list):
            open_values.extend(value)
        elif isinstance(value, dict):
            open_values.extend((*value.keys(), *value.values()))


def _has_words(messages: list[JsonObject]) -> bool:
    """Whether anything but white space is said."""
    return any(line.partition(": ")[2].strip() for message in messages for line in flatten([message]).splitlines())


def _nothing_left() -> CorruptPrompt:
    return CorruptPrompt("The moderation of this horde leaves nothing of the text. Change it and send it again.")
