"""What a reply has to keep, looked at before it is sent: a reply that breaks it is a fault of the backend.

The horde judges every reply again (worker API, "What is refused"). To send it what it must
refuse would tell the requester's log less than a fault does, and costs this worker the same.
"""

import json

from .chat import Json, UnusableCompletion

LONGEST_TOKEN = 16
"""Characters a token, as a mean over a whole reply. Prose has about four; only blanks and rules come near this."""

SPARE_CHARACTERS = 256
"""A short reply may be one very long token."""

NO_JSON = object()


def judge(reply: Json, payload: Json) -> Json:
    """The reply, without a usage that cannot be true.

    Raises UnusableCompletion when the reply is longer than asked, or not what was asked for.
    """
    message = reply["message"]
    written = _written(message)
    most = payload.get("max_tokens")
    if most and len(written) > LONGEST_TOKEN * most + SPARE_CHARACTERS:
        raise UnusableCompletion("the reply is longer than max_tokens allows")
    _judge_calls(message["tool_calls"] or [], reply["finish_reason"], payload)
    if reply["finish_reason"] != "length":
        _judge_json(message, payload)
    return {**reply, "usage": _true_usage(reply["usage"], written, most)}


def _written(message: Json) -> str:
    parts = [message["content"] or "", message["reasoning_content"] or ""]
    for call in message["tool_calls"] or []:
        parts += [call["function"]["name"], call["function"]["arguments"]]
    return "".join(parts)


def _true_usage(usage: Json | None, written: str, most: int | None) -> Json | None:
    """The usage, when its count of the reply can be right.

    More tokens than asked for means either that the text is too long or that the count is wrong.
    A token is at least a byte, so a text of fewer bytes shows which.
    """
    reported = (usage or {}).get("completion_tokens")
    if not most or reported is None or reported <= most + 1:
        return usage
    if len(written.encode()) > most:
        raise UnusableCompletion("the backend wrote more tokens than max_tokens")
    return None


def _judge_calls(calls: list[Json], finish: str, payload: Json) -> None:
    offered = {tool["function"]["name"] for tool in payload.get("tools") or []}
    for call in calls:
        if call["function"]["name"] not in offered:
            raise UnusableCompletion("a call to a function that the job does not offer")
        if finish != "length" and not isinstance(_value(call["function"]["arguments"]), dict):
            raise UnusableCompletion("a call's arguments are not a JSON object")
    if payload.get("tool_choice") == "required" and not calls and finish != "length":
        raise UnusableCompletion("no call, although one was required")


def _judge_json(message: Json, payload: Json) -> None:
    kind = (payload.get("response_format") or {}).get("type")
    if kind not in {"json_object", "json_schema"} or message["tool_calls"]:
        return
    value = _value(message["content"] or "")
    if value is NO_JSON or (kind == "json_object" and not isinstance(value, dict)):
        raise UnusableCompletion("the content is not the JSON that was asked for")


def _value(text: str) -> object:
    """The JSON value of a text, or NO_JSON."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return NO_JSON
