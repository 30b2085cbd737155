"""JSON on the wire."""

import pytest

from front.wire import decode_object, encode


def test_line_separators_are_escaped() -> None:
    assert encode({"a": "\u2028\u2029\u0085\n"}) == b'{"a":"\\u2028\\u2029\\u0085\\n"}'


def test_a_lone_surrogate_is_replaced() -> None:
    assert encode({"a": ["x\ud83d"], "b": 1}) == '{"a":["x\ufffd"],"b":1}'.encode()


def test_a_damaged_answer_is_read_as_far_as_it_goes() -> None:
    assert decode_object(b'{"a":"\\ud83d"}') == {"a": "\ufffd"}
    assert decode_object(b'{"a":"\xff"}') == {"a": "\ufffd"}


@pytest.mark.parametrize("raw", [b"", b"[]", b"null", b"<html>", b"{"])
def test_what_is_no_object_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError, match=r".+"):
        decode_object(raw)
