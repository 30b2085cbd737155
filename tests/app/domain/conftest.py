"""Requests and declarations of the pure rules' tests."""

from collections.abc import Callable
from typing import Any

import pytest

from app.domain.capabilities import Declaration, Requirements, parse_declaration
from app.domain.contract import ChatRequest, Face, parse_chat_request


@pytest.fixture
def chat() -> Callable[..., ChatRequest]:
    """Makes a chat request with these members."""

    def make(**members: Any) -> ChatRequest:
        return parse_chat_request(
            {"model": "m", "messages": [{"role": "user", "content": "hi"}]} | members, Face.NATIVE
        )

    return make


@pytest.fixture
def declared() -> Callable[..., Declaration]:
    """Makes the declaration of an online chat worker with these members."""

    def make(**members: Any) -> Declaration:
        body = {"name": "w", "chat_jobs": True, "model_id": "m", "chat_features": ["prompt_overflow_refused"]}
        return parse_declaration(body | members)[0]

    return make


@pytest.fixture
def required() -> Callable[..., Requirements]:
    """Makes the requirements of a plain strict chat request, with these fields changed."""

    def make(**changed: Any) -> Requirements:
        plain: dict[str, Any] = {
            "is_chat": True,
            "models": ("m",),
            "features": ("prompt_overflow_refused",),
            "max_length": 512,
            "max_context_length": 1000,
        }
        return Requirements(**plain | changed)

    return make
