"""The rule that ties tool calls to their answers, in OpenAI's words (contract C1).

Every id of an assistant message's calls is answered by the tool messages right after
it: none is left out, none is foreign, none comes twice.
"""

from app.domain.contract import refusals
from app.domain.contract.fields import JsonObject


def check_tool_history(messages: list[JsonObject]) -> None:
    """Accept conversations whose calls are all answered in their place.

    Raises ContractRefusal for the first message that is not.
    """
    open_calls: list[str] | None = None
    answers: dict[str, int] = {}
    for index, message in enumerate(messages):
        if message["role"] == "tool":
            _check_answer(str(message["tool_call_id"]), index, open_calls, answers)
            answers[str(message["tool_call_id"])] = index
            continue
        _check_all_answered(open_calls, answers, index)
        open_calls, answers = _call_ids(message, index), {}
    _check_all_answered(open_calls, answers, len(messages))


def _call_ids(message: JsonObject, index: int) -> list[str] | None:
    calls = message.get("tool_calls")
    if not isinstance(calls, list):
        return None
    ids = [str(call["id"]) for call in calls]
    for number, call_id in enumerate(ids):
        if call_id in ids[:number]:
            raise refusals.refusal(
                f"Invalid parameter: Duplicate value for 'id' of '{refusals.shortened(call_id)}', "
                f"in messages[{index}].tool_calls.",
                f"messages[{index}].tool_calls[{number}].id",
            )
    return ids


def _check_answer(call_id: str, index: int, open_calls: list[str] | None, answers: dict[str, int]) -> None:
    if open_calls is None:
        raise refusals.refusal(
            "Invalid parameter: messages with role 'tool' must be a response to a preceeding message "
            "with 'tool_calls'.",
            f"messages.[{index}].role",
        )
    shown = refusals.shortened(call_id)
    if call_id not in open_calls:
        raise refusals.refusal(
            f"Invalid parameter: 'tool_call_id' of '{shown}' not found in 'tool_calls' of previous message.",
            f"messages.[{index}].tool_call_id",
        )
    if call_id in answers:
        raise refusals.refusal(
            f"Invalid parameter: Duplicate value for 'tool_call_id' of '{shown}', "
            f"in messages[{answers[call_id]}] and messages[{index}].",
            f"messages.[{index}].tool_call_id",
        )


def _check_all_answered(open_calls: list[str] | None, answers: dict[str, int], index: int) -> None:
    unanswered = [call_id for call_id in open_calls or () if call_id not in answers]
    if unanswered:
        raise refusals.refusal(
            "An assistant message with 'tool_calls' must be followed by tool messages responding to each "
            "'tool_call_id'. The following tool_call_ids did not have response messages: "
            f"{refusals.shortened(', '.join(unanswered))}",
            f"messages.[{index}].role",
        )
