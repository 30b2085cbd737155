"""Keys in an Authorization header."""

import pytest

from front.chat import api_key
from front.errors import FrontError


@pytest.mark.parametrize(
    ("header", "key"),
    [
        (None, "0000000000"),
        ("", "0000000000"),
        ("Bearer", "0000000000"),
        ("bearer  ", "0000000000"),
        ("Bearer abc", "abc"),
        ("bearer  abc ", "abc"),
    ],
)
def test_a_key_is_read_and_none_is_the_anonymous_one(header: str | None, key: str) -> None:
    assert api_key(header) == key


@pytest.mark.parametrize("header", ["Basic abc", "abc", "Bearer a b", "Bearer \u00e9", "Bearer " + "k" * 256])
def test_what_cannot_be_a_key_is_refused(header: str) -> None:
    with pytest.raises(FrontError) as refused:
        api_key(header)
    assert refused.value.problem.status == 401
