"""A completion put together from the chunks of a backend's stream."""

from typing import Any

from .chat import Json, UnusableCompletion, reasoning_of


class Assembly:
    """Takes chunks in their order. It knows text and reasoning: only jobs without tools are streamed (details D5)."""

    def __init__(self) -> None:
        self._content: list[str] = []
        self._reasoning: list[str] = []
        self._finish: Any = None
        self._usage: Any = None

    def add(self, chunk: Json) -> tuple[str, str]:
        """Takes one chunk; returns its piece of the content and of the reasoning.

        Raises UnusableCompletion.
        """
        self._usage = chunk.get("usage") or self._usage
        choices = chunk.get("choices") or [{}]
        choice = choices[0] if isinstance(choices, list) else None
        delta = (choice.get("delta") or {}) if isinstance(choice, dict) else None
        if not isinstance(choice, dict) or not isinstance(delta, dict):
            raise UnusableCompletion("a chunk has no choice with a delta")
        if delta.get("tool_calls"):
            raise UnusableCompletion("the stream calls a tool, and there are none")
        self._finish = choice.get("finish_reason") or self._finish
        content, reasoning = delta.get("content") or "", reasoning_of(delta) or ""
        if not isinstance(content, str):
            raise UnusableCompletion("a chunk's content is not text")
        self._content.append(content)
        self._reasoning.append(reasoning)
        return content, reasoning

    def completion(self) -> Json:
        """The whole as a completion. Raises UnusableCompletion for a stream that ended before its reply did."""
        if self._finish is None:
            raise UnusableCompletion("the stream ended without a finish reason")
        message = {"content": "".join(self._content), "reasoning_content": "".join(self._reasoning)}
        return {"choices": [{"message": message, "finish_reason": self._finish}], "usage": self._usage}
