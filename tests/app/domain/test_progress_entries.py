"""Entries of the retained progress stream (details D6)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.domain.progress_entries import ProgressEntry

_TEXTS = st.text(st.characters(exclude_categories=["Cs"]))


@given(gen=st.uuids().map(str), seq=st.integers(0, 2**53), delta=_TEXTS, reasoning=_TEXTS)
def test_a_posted_entry_reads_back_as_it_was_written(gen: str, seq: int, delta: str, reasoning: str) -> None:
    entry = ProgressEntry(generation_id=gen, seq=seq, delta=delta, reasoning_delta=reasoning)
    assert ProgressEntry.decode(entry.encode()) == entry


@given(gen=st.uuids().map(str), delta=_TEXTS)
def test_an_entry_reads_back_from_the_bytes_that_redis_answers(gen: str, delta: str) -> None:
    entry = ProgressEntry(generation_id=gen, seq=0, delta=delta)
    assert ProgressEntry.decode({name.encode(): value.encode() for name, value in entry.encode().items()}) == entry


def test_an_ended_marker_carries_its_generation_and_nothing_else() -> None:
    marker = ProgressEntry(generation_id="g", ended=True)
    assert marker.encode() == {"gen": "g", "ended": "1"}
    assert ProgressEntry.decode(marker.encode()) == marker


@pytest.mark.parametrize(
    "fields",
    [{}, {"gen": ""}, {"gen": "g"}, {"gen": "g", "seq": "x"}, {"gen": "g", "seq": ""}, {b"gen": b"\xff", b"seq": b"0"}],
    ids=str,
)
def test_fields_that_are_no_entry_are_refused(fields: dict[str, str] | dict[bytes, bytes]) -> None:
    with pytest.raises(ValueError, match=r"entry|literal|decode"):
        ProgressEntry.decode(fields)
