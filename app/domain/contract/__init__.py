"""The chat contract: one request body, read and refused the same way on both faces (contract C1, C2)."""

from app.domain.contract.horde_options import HordeOptions
from app.domain.contract.request import ChatRequest, Face, parse_chat_request

__all__ = ["ChatRequest", "Face", "HordeOptions", "parse_chat_request"]
