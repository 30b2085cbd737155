"""Refusals that only OpenAI's own backend needs, for clients that want them here too (contract C2).

The horde's workers can do what these forbid, so they apply on request alone: `horde.openai_guards`.
"""

from typing import Any

from app.domain.contract import refusals
from app.domain.contract.fields import JsonObject

MAX_CALL_ID = 40

_NO_JSON_WORD = "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'."


def apply_openai_guards(messages: list[JsonObject], response_format: JsonObject | None) -> None:
    """Refuse call ids that are longer than OpenAI's, and a JSON object in a conversation that never says JSON."""
    for index, message in enumerate(messages):
        _check_call_ids(message, f"messages[{index}]")
    if response_format == {"type": "json_object"} and not any(
        "json" in text.lower() for message in messages for text in _texts(message)
    ):
        raise refusals.refusal(_NO_JSON_WORD, "messages")


def _check_call_ids(message: dict[str, Any], path: str) -> None:
    ids = {f"{path}.tool_calls[{index}].id": call["id"] for index, call in enumerate(message.get("tool_calls", []))}
    if "tool_call_id" in message:
        ids[f"{path}.tool_call_id"] = message["tool_call_id"]
    for where, call_id in ids.items():
        if len(call_id) > MAX_CALL_ID:
            raise refusals.string_too_long(where, MAX_CALL_ID, len(call_id))


def _texts(message: JsonObject) -> list[str]:
    content = message.get("content")
    if isinstance(content, str):
        return [content]
    return [str(part["text"]) for part in content if "text" in part] if isinstance(content, list) else []
