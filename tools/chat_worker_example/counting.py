"""Prompt fit: does a conversation, with the reply it asks for, fit the model's context?

Two counters (the source's section on prompt fit). The *exact* counter has the
backend render and tokenize the very call. The *byte bound* needs no route: a
byte-level tokenizer makes at most one token of a byte, so the UTF-8 length of the
call's JSON cannot be below its token count; what the template adds on its own is
measured once and added. An image is no text: each counts as the number of tokens
that the operator gave for the largest one.
"""

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from .chat import Json

RENDERED_FIELDS = ("messages", "tools", "response_format")
"""The parts of a call that a chat template may put into the prompt."""


class PromptOverflow(Exception):
    """The conversation and the reply it asks for do not fit; sizes in tokens."""

    def __init__(self, prompt: int, reply: int, context: int) -> None:
        super().__init__(f"prompt of {prompt} and reply of {reply} tokens do not fit {context}")
        self.prompt = prompt
        self.reply = reply
        self.context = context


def without_images(call: Json) -> tuple[Json, int]:
    """The call with its text parts alone, and how many images it had."""
    images, messages = 0, []
    for message in call["messages"]:
        content = message.get("content")
        if isinstance(content, list):
            texts = [part for part in content if part.get("type") != "image_url"]
            images += len(content) - len(texts)
            # A backend may refuse a message without parts, and none is shorter than an empty text.
            messages.append({**message, "content": texts or ""})
        else:
            messages.append(message)
    return {**call, "messages": messages}, images


def byte_bound(call: Json, overhead: int) -> int:
    """The most tokens that the text of the call's prompt can have; `overhead` is the template's own part in tokens."""
    rendered = {name: call[name] for name in RENDERED_FIELDS if call.get(name) is not None}
    text = json.dumps(rendered, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate cannot be encoded plainly; the backend will see three bytes in its place.
    return len(text.encode("utf-8", "surrogatepass")) + overhead


@dataclass(frozen=True)
class PromptFit:
    """The check before each generation. Without `count_exactly` the byte bound alone decides."""

    context: int
    overhead: int
    count_exactly: Callable[[Json], Awaitable[int]] | None = None
    image_tokens: int = 0
    """The most tokens of one image."""

    async def check(self, call: Json) -> int:
        """Tokens that the prompt has at most.

        Raises PromptOverflow when they and the reply's max_tokens exceed the context.
        """
        text, images = without_images(call)
        room = self.context - images * self.image_tokens - (call.get("max_tokens") or 0)
        prompt = byte_bound(text, self.overhead)
        # The bound settles most conversations without a round trip. It cannot see what a template
        # writes around tools or a schema, so those go to the exact counter wherever there is one.
        preamble = call.get("tools") or call.get("response_format")
        if self.count_exactly is not None and (preamble or prompt > room):
            prompt = await self.count_exactly(text)
        if prompt > room:
            raise PromptOverflow(prompt + images * self.image_tokens, call.get("max_tokens") or 0, self.context)
        return prompt + images * self.image_tokens
