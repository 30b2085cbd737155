"""Caps on open requests."""

import pytest

from front.admission import KNOWN_KEY_LIMIT, KNOWN_KEY_SECONDS, Admission, KnownKeys
from front.errors import FrontError


def test_a_source_gets_its_places_and_not_one_more() -> None:
    admission = Admission(open_limit=10, source_limit=2)
    releases = [admission.admit("a"), admission.admit("a")]
    with pytest.raises(FrontError) as refused:
        admission.admit("a")
    assert refused.value.problem.code == "FrontAtCapacity"
    admission.admit("b")
    releases[0]()
    admission.admit("a")


def test_all_sources_together_have_a_cap() -> None:
    admission = Admission(open_limit=2, source_limit=2)
    admission.admit("a")
    release = admission.admit("b")
    with pytest.raises(FrontError):
        admission.admit("c")
    assert admission.hold() is None
    release()
    assert admission.hold() is not None
    assert admission.open == 2


def test_a_key_is_a_source_only_while_it_is_known() -> None:
    now = 0.0
    keys = KnownKeys(clock=lambda: now)
    assert keys.source("k") is None
    keys.remember("k")
    assert keys.source("k") is not None
    now = KNOWN_KEY_SECONDS
    assert keys.source("k") is None


def test_the_oldest_key_is_forgotten_first() -> None:
    keys = KnownKeys()
    for number in range(KNOWN_KEY_LIMIT + 1):
        keys.remember(f"key-{number}")
    assert keys.source("key-0") is None
    assert keys.source(f"key-{KNOWN_KEY_LIMIT}") is not None
