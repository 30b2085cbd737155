"""What the contract's checks add to a submit, as a ratio to `json.loads` of the same bytes.

    python -m bench.contract [--rounds 200]

Times the whole way from bytes to a checked request, as both faces go it: the JSON
boundary and the parser. A second line gives the flattening and the fingerprint that
the native API adds.
"""

import argparse
import json
import time
from collections.abc import Callable
from statistics import median
from typing import Any

import orjson

from app.domain.contract import ChatRequest, Face, parse_chat_request
from app.domain.fingerprint import fingerprint
from app.domain.flattening import flatten
from app.domain.json_boundary import parse_object
from bench.report import Figure, tell

MILLISECONDS = 1000
BOUNDS_MILLISECONDS = {"4 kB, 3 tools": 1.0, "1 MB conversation": 30.0}
"""What the issue allows."""
FIGURES = {"4 kB, 3 tools": "contract_4k", "1 MB conversation": "contract_1m"}


def with_tools(size: int) -> bytes:
    """A body of this many bytes with three tools, one of them strict."""
    schema = {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Name of the city."},
            "unit": {"enum": ["celsius", "fahrenheit"]},
            "days": {"type": "array", "items": {"type": "integer", "minimum": 1}},
        },
        "required": ["city", "unit", "days"],
        "additionalProperties": False,
    }
    tools = [
        {
            "type": "function",
            "function": {"name": name, "description": "Looks things up.", "parameters": schema, "strict": name == "a"},
        }
        for name in "abc"
    ]
    body: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": ""}], "tools": tools}
    body["messages"][0]["content"] = "x" * (size - len(orjson.dumps(body)))
    return orjson.dumps(body)


def conversation(size: int, turns: int) -> bytes:
    """A body of about this many bytes in this many messages, with line ends and quotes as prose has them."""
    text = 'A line with "quotes" and é.\n' * (size // turns // 33)
    messages = [{"role": "user" if turn % 2 == 0 else "assistant", "content": text} for turn in range(turns)]
    return orjson.dumps({"model": "m", "messages": messages})


def checked(raw: bytes) -> ChatRequest:
    """From bytes to a request."""
    return parse_chat_request(parse_object(raw), Face.FRONT)


def timed(call: Callable[[], object], rounds: int) -> float:
    """Median milliseconds of a call."""
    taken = []
    for _ in range(rounds):
        started = time.perf_counter()
        call()
        taken.append(time.perf_counter() - started)
    return median(taken) * MILLISECONDS


def main() -> None:
    """Print a table, and fail when a bound is exceeded."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=200)
    rounds = parser.parse_args().rounds
    exceeded = []
    for name, raw in (("4 kB, 3 tools", with_tools(4096)), ("1 MB conversation", conversation(2**20, 200))):
        baseline = timed(lambda raw=raw: json.loads(raw), rounds)  # type: ignore[misc]
        check = timed(lambda raw=raw: checked(raw), rounds)  # type: ignore[misc]
        request = checked(raw)
        rest = timed(lambda request=request: (flatten(request.messages, request.tools), fingerprint(request)), rounds)  # type: ignore[misc]
        print(f"{name} ({len(raw)} bytes): json.loads {baseline:.3f} ms")
        print(f"  bytes to request      {check:8.3f} ms  {check / baseline:5.2f} x json.loads")
        print(f"  flatten, fingerprint  {rest:8.3f} ms  {rest / baseline:5.2f} x json.loads")
        tell(Figure(FIGURES[name], check, check / baseline))
        if check > BOUNDS_MILLISECONDS[name]:
            exceeded.append(f"{name}: {check:.3f} ms, allowed {BOUNDS_MILLISECONDS[name]} ms")
    if exceeded:
        raise SystemExit("\n".join(exceeded))


if __name__ == "__main__":
    main()
