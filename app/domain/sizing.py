"""The sizes at which a request is routed and priced: its output, its context, and what is kept to fit (details D1)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace

from app.domain.capabilities import (
    Declaration,
    Limit,
    Requirements,
    largest_limit,
    requirements_of,
)
from app.domain.context_fit import fitted
from app.domain.contract import ChatRequest
from app.domain.flattening import estimate_tokens, flatten


@dataclass(frozen=True, slots=True, kw_only=True)
class SizedRequest:
    """A request as its worker will get it, with its flattened text and that text's tokens by estimate."""

    chat: ChatRequest
    requirements: Requirements
    prompt: str
    context_tokens: int
    warnings: tuple[str, ...] = ()


def sized(chat: ChatRequest, max_length: int) -> SizedRequest:
    """The request at this output length, with all of its messages."""
    prompt = flatten(chat.messages, chat.tools)
    context_tokens = estimate_tokens(prompt)
    context = chat.horde.max_context_length or context_tokens + max_length
    requirements = requirements_of(chat, max_length=max_length, max_context_length=context)
    return SizedRequest(chat=chat, requirements=requirements, prompt=prompt, context_tokens=context_tokens)


def fitted_to(declarations: Sequence[Declaration], asked: SizedRequest) -> SizedRequest:
    """The request lowered to what the workers that serve it offer, and shortened to it where the client allows.

    A length that the client named is not lowered without a warning.
    """
    fitting, warnings = asked, []
    length = asked.requirements.max_length
    largest = largest_limit(declarations, asked.requirements, Limit.MAX_LENGTH)
    if largest is not None and largest < length:
        fitting = sized(asked.chat, largest)
        if asked.chat.max_tokens is not None:
            warnings.append(
                f"max_tokens was lowered from {length} to {largest}, the largest that an online worker serves."
            )
    shortened = _shortened(declarations, fitting)
    if shortened is not None:
        count = len(asked.chat.messages) - len(shortened.chat.messages)
        warnings.append(f"context_fit dropped the oldest {count} messages, to fit the largest context that is online.")
    return replace(shortened or fitting, warnings=tuple(warnings))


def _shortened(declarations: Sequence[Declaration], asked: SizedRequest) -> SizedRequest | None:
    """The request without its oldest turns; None where it fits, or the client wants it refused, or none can fall."""
    if asked.chat.horde.context_fit != "truncate_oldest":
        return None
    largest = largest_limit(declarations, asked.requirements, Limit.MAX_CONTEXT_LENGTH)
    if largest is None or asked.requirements.max_context_length <= largest:
        return None
    kept = fitted(asked.chat.messages, asked.chat.tools, largest - asked.requirements.max_length)
    if len(kept) == len(asked.chat.messages):
        return None
    # The size that the client gave was that of the whole conversation.
    options = replace(asked.chat.horde, max_context_length=None)
    return sized(replace(asked.chat, messages=kept, horde=options), asked.requirements.max_length)
