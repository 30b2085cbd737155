"""Function tools, and which of them the model may or must call (contract C1)."""

import re

from app.domain.contract import refusals
from app.domain.contract.fields import JsonObject, as_array, as_boolean, as_object, as_string, as_whole_object
from app.domain.contract.schema_shape import Subject, check_parameters
from app.domain.contract.strict_schema import check_strict_schema

MAX_TOOLS = 128
"""Tools of one request (details D22)."""

MAX_FUNCTION_NAME = 64
FUNCTION_NAME = re.compile(r"^[a-zA-Z0-9_-]+$")
TOOL_CHOICES = ("none", "auto", "required")

ToolChoice = str | JsonObject


def parse_tools(value: object) -> list[JsonObject] | None:
    """The function tools without unknown keys; None for an empty list, which means absent (details D2)."""
    items = as_array(value, "tools", "an array of objects", most=MAX_TOOLS)
    return [_parse_tool(item, f"tools[{index}]") for index, item in enumerate(items)] or None


def parse_tool_choice(value: object, tools: list[JsonObject] | None) -> ToolChoice:
    """One of the three words, or the object that names a function of `tools`.

    Raises ContractRefusal; without tools for every value, a default too (details D2).
    """
    if tools is None:
        raise refusals.needs_tools("tool_choice")
    if isinstance(value, str):
        if value not in TOOL_CHOICES:
            raise refusals.invalid_value("tool_choice", value, TOOL_CHOICES)
        return value
    if not isinstance(value, dict):
        raise refusals.invalid_type("tool_choice", "one of one of 'none', 'auto', or 'required' or object", value)
    return _parse_named_choice(value, tools)


def parse_parallel_tool_calls(value: object, tools: list[JsonObject] | None) -> bool:
    """Whether several calls at once are welcome.

    Raises ContractRefusal; without tools for every value, the default too (details D2).
    """
    if tools is None:
        raise refusals.needs_tools("parallel_tool_calls")
    return as_boolean(value, "parallel_tool_calls")


def function_name(tool: JsonObject) -> str:
    """Name of a stored tool's or tool choice's function."""
    function = tool["function"]
    return str(function["name"]) if isinstance(function, dict) else ""


def named_function(choice: ToolChoice | None) -> str | None:
    """The function that a stored tool choice forces by name, if it does."""
    return function_name(choice) if isinstance(choice, dict) else None


def _parse_tool(value: object, path: str) -> JsonObject:
    tool = as_object(value, path)
    if "type" not in tool:
        raise refusals.missing(f"{path}.type")
    kind = as_string(tool["type"], f"{path}.type")
    if kind == "custom":
        raise refusals.unsupported_value(f"{path}.type", kind)
    if kind != "function":
        raise refusals.invalid_value(f"{path}.type", kind, ("function", "custom"))
    if "function" not in tool:
        raise refusals.missing(f"{path}.function")
    return {"type": "function", "function": _parse_function(tool["function"], f"{path}.function")}


def _parse_function(value: object, path: str) -> JsonObject:
    given = as_object(value, path)
    if "name" not in given:
        raise refusals.missing(f"{path}.name")
    name = as_string(given["name"], f"{path}.name", most=MAX_FUNCTION_NAME, pattern=FUNCTION_NAME)
    function: JsonObject = {"name": name}
    if "description" in given:
        function["description"] = as_string(given["description"], f"{path}.description")
    if "parameters" in given:
        function["parameters"] = as_whole_object(given["parameters"], f"{path}.parameters")
    if "strict" in given:
        function["strict"] = as_boolean(given["strict"], f"{path}.strict")
    _check_parameters(function, path)
    return function


def _check_parameters(function: JsonObject, path: str) -> None:
    parameters = function.get("parameters")
    if not isinstance(parameters, dict):
        return
    subject = Subject("function", str(function["name"]), f"{path}.parameters", "invalid_function_parameters")
    check_parameters(subject, parameters)
    if function.get("strict"):
        check_strict_schema(subject, parameters)


def _parse_named_choice(value: JsonObject, tools: list[JsonObject]) -> JsonObject:
    # Only the function is looked at, as OpenAI does: the `type` beside it is not checked.
    choice = as_object(value, "tool_choice")
    if "function" not in choice:
        raise refusals.missing("tool_choice.function")
    function = as_object(choice["function"], "tool_choice.function")
    if "name" not in function:
        raise refusals.missing("tool_choice.function.name")
    name = as_string(function["name"], "tool_choice.function.name")
    if all(function_name(tool) != name for tool in tools):
        raise refusals.refusal(
            f"Invalid value for 'tool_choice': no function named '{refusals.shortened(name)}' was specified "
            "in the 'tools' parameter.",
            "tool_choice",
        )
    return {"type": "function", "function": {"name": name}}
