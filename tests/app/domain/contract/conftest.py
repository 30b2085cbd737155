"""Bodies of the contract's tests, and what they are answered with."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.contract import ChatRequest, Face, parse_chat_request
from app.domain.errors import ContractRefusal

Body = dict[str, Any]


@pytest.fixture
def body() -> Body:
    """The smallest good body."""
    return {"model": "m", "messages": [{"role": "user", "content": "hi"}]}


@pytest.fixture
def tool() -> Body:
    """One function tool."""
    return {
        "type": "function",
        "function": {"name": "f", "parameters": {"type": "object", "properties": {"a": {"type": "integer"}}}},
    }


@pytest.fixture
def parsed(body: Body) -> Callable[..., ChatRequest]:
    """Parses the smallest body with these members changed, on the native face unless told."""

    def parse(*, face: Face = Face.NATIVE, **members: object) -> ChatRequest:
        return parse_chat_request(body | members, face)

    return parse


@pytest.fixture
def refused(parsed: Callable[..., ChatRequest]) -> Callable[..., tuple[str, str | None, str]]:
    """The message, param and code with which a changed body is refused; every one of them is a 400."""

    def refuse(**members: Any) -> tuple[str, str | None, str]:
        with pytest.raises(ContractRefusal) as caught:
            parsed(**members)
        assert caught.value.http_status == 400
        return caught.value.message, caught.value.param, caught.value.code

    return refuse
