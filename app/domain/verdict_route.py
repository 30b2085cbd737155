"""Which queue verifies a reply: the quick one, or the one whose work may take long (details D13)."""

from collections.abc import Collection

from app.domain.declaration import Guarantee
from app.domain.task_names import TaskName

LARGE_CHARACTERS = 200_000
"""A conversation or reply beyond this would hold up the quick queue by its size alone."""

_LARGE_TOKENS = LARGE_CHARACTERS // 3


def is_judged_by_schema(features: Collection[str]) -> bool:
    """Whether a client's schema decides about the reply, given what its request requires."""
    return Guarantee.JSON_SCHEMA_ENFORCED in features


def verification_task(features: Collection[str], *, context_tokens: int, reply_characters: int) -> TaskName:
    """The task that verifies a reply."""
    large = context_tokens > _LARGE_TOKENS or reply_characters > LARGE_CHARACTERS
    return TaskName.VERIFY_BY_SCHEMA if large or is_judged_by_schema(features) else TaskName.VERIFY_GENERATION
