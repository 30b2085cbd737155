"""The transport flowchart, with its four leaves (the source, ADR 0032)."""

import pytest

from app.domain.images.transport import Carriage, carriage


@pytest.mark.parametrize(
    ("declared", "offloaded", "has_images", "expected"),
    [
        ({"messages_url"}, True, False, Carriage.OFFLOADED),
        ({"messages_url", "url"}, True, True, Carriage.OFFLOADED),
        ({"messages_url", "url"}, False, True, Carriage.LINKED),
        ({"url"}, True, True, Carriage.LINKED),
        ({"url", "base64"}, False, True, Carriage.LINKED),
        ({"base64"}, False, True, Carriage.INLINED),
        ({"base64"}, True, True, Carriage.INLINED),
        (set(), False, False, Carriage.PLAIN),
        ({"url"}, True, False, Carriage.PLAIN),
        ({"messages_url"}, False, False, Carriage.PLAIN),
    ],
)
def test_the_way_follows_what_is_stored_and_what_is_declared(
    declared: set[str], offloaded: bool, has_images: bool, expected: Carriage
) -> None:
    assert carriage(declared, offloaded=offloaded, has_images=has_images) is expected
