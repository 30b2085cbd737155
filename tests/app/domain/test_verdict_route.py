"""Which queue verifies a reply."""

import pytest

from app.domain.task_names import TaskName
from app.domain.verdict_route import LARGE_CHARACTERS, verification_task

STRICT_SCHEMA = ["json_schema", "json_schema_enforced", "prompt_overflow_refused"]


@pytest.mark.parametrize(
    ("features", "context_tokens", "characters", "task"),
    [
        (["prompt_overflow_refused"], 10, 10, TaskName.VERIFY_GENERATION),
        (["json_schema", "prompt_overflow_refused"], 10, 10, TaskName.VERIFY_GENERATION),
        (STRICT_SCHEMA, 10, 10, TaskName.VERIFY_BY_SCHEMA),
        ([], 10, LARGE_CHARACTERS, TaskName.VERIFY_GENERATION),
        ([], 10, LARGE_CHARACTERS + 1, TaskName.VERIFY_BY_SCHEMA),
        ([], LARGE_CHARACTERS // 3 + 1, 10, TaskName.VERIFY_BY_SCHEMA),
    ],
)
def test_what_may_take_long_is_verified_apart(
    features: list[str], context_tokens: int, characters: int, task: TaskName
) -> None:
    assert verification_task(features, context_tokens=context_tokens, reply_characters=characters) is task
