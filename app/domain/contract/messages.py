"""The conversation: roles, content and parts, read into the form that is stored (contract C1).

Unknown keys inside a message are dropped, so that a reply replayed by any SDK is
accepted; what remains is exactly what a worker may receive.
"""

import re

from app.domain.contract import refusals
from app.domain.contract.fields import JsonObject, as_array, as_choice, as_object, as_string
from app.domain.contract.tool_history import check_tool_history
from app.domain.contract.tools import FUNCTION_NAME, MAX_FUNCTION_NAME
from app.domain.errors import ContractRefusal

MAX_MESSAGES = 2048
"""Messages of one request (details D22)."""

OPENAI_ROLES = ("system", "assistant", "user", "function", "tool", "developer")
OPENAI_PARTS = ("text", "image_url", "input_audio", "refusal", "audio", "file")
IMAGE_DETAILS = ("auto", "low", "high")

_PARTICIPANT = re.compile(r"^[^\s<|\\/>]+$")
_IMAGE_URL = re.compile(r"https?://\S+|data:image/[a-zA-Z0-9.+-]+;base64,.+", re.DOTALL)


def parse_messages(value: object) -> list[JsonObject]:
    """The conversation as it is stored.

    Raises ContractRefusal for the first message, part or tool history that OpenAI would refuse too.
    """
    items = as_array(value, "messages", "an array of objects", most=MAX_MESSAGES)
    if not items:
        raise refusals.empty_array("messages")
    messages = [_parse_message(item, index) for index, item in enumerate(items)]
    check_tool_history(messages)
    return messages


def image_count(messages: list[JsonObject]) -> int:
    """Number of image parts in stored messages."""
    return sum(
        part["type"] == "image_url"
        for message in messages
        if isinstance(content := message.get("content"), list)
        for part in content
    )


def has_tool_history(messages: list[JsonObject]) -> bool:
    """Whether stored messages hold a tool call or its answer."""
    return any(message["role"] == "tool" or "tool_calls" in message for message in messages)


def _parse_message(value: object, index: int) -> JsonObject:
    path = f"messages[{index}]"
    given = as_object(value, path)
    if "role" not in given:
        raise refusals.missing(f"{path}.role")
    role = as_choice(given["role"], f"{path}.role", OPENAI_ROLES)
    if role == "function":
        raise refusals.unsupported_value(f"{path}.role", role)
    message: JsonObject = {"role": "system" if role == "developer" else role}
    message["content"] = _parse_assistant_content(given, path) if role == "assistant" else _content(given, role, index)
    if "name" in given and role != "tool":
        message["name"] = as_string(given["name"], f"{path}.name", pattern=_PARTICIPANT)
    if given.get("tool_calls", []) != []:
        if role != "assistant":
            raise refusals.unknown_key(f"{path}.tool_calls")
        message["tool_calls"] = _parse_tool_calls(given["tool_calls"], f"{path}.tool_calls")
    if role == "assistant":
        _finish_assistant(message, given, path)
    if role == "tool":
        message["tool_call_id"] = _parse_tool_call_id(given, index)
    return message


def _content(given: JsonObject, role: str, index: int) -> object:
    path = f"messages[{index}].content"
    if "content" not in given:
        raise refusals.refusal(
            "Invalid value for 'content': expected a string, got null.", f"messages.[{index}].content"
        )
    content = given["content"]
    if isinstance(content, str):
        return content
    if isinstance(content, list) and role != "user":
        _refuse_images(content, role, f"messages[{index}]")
    return _parse_parts(content, path, role)


def _parse_assistant_content(given: JsonObject, path: str) -> object:
    content = given.get("content")
    if content is None or isinstance(content, str):
        return content
    if isinstance(content, list):
        _refuse_images(content, "assistant", path)
    return _parse_parts(content, f"{path}.content", "assistant")


def _finish_assistant(message: JsonObject, given: JsonObject, path: str) -> None:
    """Refuse a legacy call, and give a turn without content and calls its text.

    A null content beside tool calls is the usual form and stays; alone it would break chat
    templates, so it becomes the refusal's text, or nothing.
    """
    if "function_call" in given:
        raise refusals.unsupported_key(f"{path}.function_call", "Use 'tool_calls'.")
    if message["content"] is None and "tool_calls" not in message:
        refused = given.get("refusal")
        message["content"] = refused if isinstance(refused, str) else ""


def _refuse_images(parts: list[object], role: str, path: str) -> None:
    if any(isinstance(part, dict) and part.get("type") == "image_url" for part in parts):
        raise refusals.refusal(
            f"Invalid '{path}'. Image URLs are only allowed for messages with role 'user', "
            f"but this message with role '{role}' contains an image URL.",
            path,
            "invalid_value",
        )


def _parse_parts(value: object, path: str, role: str) -> list[JsonObject]:
    parts = as_array(value, path, "one of a string or array of objects")
    if not parts:
        raise refusals.empty_array(path)
    return [_parse_part(part, f"{path}[{index}]", role) for index, part in enumerate(parts)]


def _parse_part(value: object, path: str, role: str) -> JsonObject:
    part = as_object(value, path)
    if "type" not in part:
        raise refusals.missing(f"{path}.type")
    kind = as_choice(part["type"], f"{path}.type", OPENAI_PARTS)
    if kind == "image_url":
        return {"type": "image_url", "image_url": _parse_image(part, path)}
    if kind == "text":
        return {"type": "text", "text": _required_string(part, "text", path)}
    if kind == "refusal" and role == "assistant":
        # Chat templates know text alone: the model reads its earlier refusal as what it said.
        return {"type": "text", "text": _required_string(part, "refusal", path)}
    raise refusals.unsupported_value(f"{path}.type", kind)


def _parse_image(part: JsonObject, path: str) -> JsonObject:
    if "image_url" not in part:
        raise refusals.missing(f"{path}.image_url")
    given = as_object(part["image_url"], f"{path}.image_url")
    url = _required_string(given, "url", f"{path}.image_url")
    if not _IMAGE_URL.fullmatch(url):
        raise _bad_image_url(f"{path}.image_url.url")
    image: JsonObject = {"url": url}
    detail = as_choice(given.get("detail", "auto"), f"{path}.image_url.detail", IMAGE_DETAILS)
    if detail != "auto":
        image["detail"] = detail
    return image


def _bad_image_url(path: str) -> ContractRefusal:
    return refusals.refusal(
        f"Invalid '{path}'. Expected a valid URL, but got a value with an invalid format. "
        "Send an http(s) URL or data:image/...;base64,...",
        path,
        "invalid_value",
    )


def _parse_tool_calls(value: object, path: str) -> list[JsonObject]:
    calls = as_array(value, path, "an array of objects")
    return [_parse_tool_call(call, f"{path}[{index}]") for index, call in enumerate(calls)]


def _parse_tool_call(value: object, path: str) -> JsonObject:
    call = as_object(value, path)
    call_id = _required_string(call, "id", path)
    if "type" not in call:
        raise refusals.missing(f"{path}.type")
    if as_choice(call["type"], f"{path}.type", ("function", "custom")) == "custom":
        raise refusals.unsupported_value(f"{path}.type", "custom")
    if "function" not in call:
        raise refusals.missing(f"{path}.function")
    function = as_object(call["function"], f"{path}.function")
    if "name" not in function:
        raise refusals.missing(f"{path}.function.name")
    name = as_string(function["name"], f"{path}.function.name", most=MAX_FUNCTION_NAME, pattern=FUNCTION_NAME)
    arguments = _required_string(function, "arguments", f"{path}.function")
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def _parse_tool_call_id(given: JsonObject, index: int) -> str:
    if "tool_call_id" not in given:
        raise refusals.refusal(
            "Missing parameter 'tool_call_id': messages with role 'tool' must have a 'tool_call_id'.",
            f"messages.[{index}].tool_call_id",
        )
    return as_string(given["tool_call_id"], f"messages[{index}].tool_call_id")


def _required_string(given: JsonObject, key: str, path: str) -> str:
    if key not in given:
        raise refusals.missing(f"{path}.{key}")
    return as_string(given[key], f"{path}.{key}")
