"""The job that a worker receives, made from the stored request (contract C5, details D5)."""

from app.domain.contract import ChatRequest
from app.domain.contract.fields import JsonObject
from app.domain.contract.readers import DEFAULT_REASONING_EFFORT
from app.domain.contract.tools import ToolChoice, function_name, named_function


def tools_for_worker(request: ChatRequest) -> tuple[list[JsonObject], ToolChoice | None]:
    """The tools and the tool choice that reach the worker; no tools and None under `none`.

    A function that the client named goes alone, under `required`: a worker needs to know no
    other way to force a call.
    """
    if not request.tools or request.tool_choice == "none":
        return [], None
    name = named_function(request.tool_choice)
    if name is None:
        return request.tools, request.tool_choice
    return [tool for tool in request.tools if function_name(tool) == name], "required"


def may_stream(request: ChatRequest) -> bool:
    """Whether the worker's progress may be relayed: a streamed request for plain text (details D5)."""
    return request.stream and not request.tools and request.response_format is None


def chat_payload(
    request: ChatRequest, *, max_length: int, max_context_length: int, declares_reasoning: bool, stream: bool
) -> JsonObject:
    """The flat payload of a chat job.

    Every sampling field is always there. A tool or format field is there only when it applies,
    and `reasoning_effort` only when the client set it or the worker declares reasoning.
    """
    payload: JsonObject = {
        "messages": request.messages,
        "temperature": request.temperature,
        "top_p": request.top_p,
        "presence_penalty": request.presence_penalty,
        "frequency_penalty": request.frequency_penalty,
        "stop": list(request.stop),
        "seed": request.seed,
        "max_tokens": max_length,
        "max_length": max_length,
        "max_context_length": max_context_length,
        "stream": stream and may_stream(request),
        "conformance": request.horde.conformance,
    }
    tools, tool_choice = tools_for_worker(request)
    if tools:
        payload |= {
            "tools": tools,
            "tool_choice": tool_choice,
            "parallel_tool_calls": request.parallel_tool_calls,
        }
    if request.response_format is not None:
        payload["response_format"] = request.response_format
    if request.reasoning_effort is not None or declares_reasoning:
        payload["reasoning_effort"] = request.reasoning_effort or DEFAULT_REASONING_EFFORT
    return payload
