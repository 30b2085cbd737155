"""An hour of looks at the horde, as the status page draws it."""

import pytest

from app.domain.history import MINUTES, MOST_MODELS, Minute, last_hour, leading_models

NOW = 29_000_000


def test_a_look_is_kept_and_read_as_it_was() -> None:
    look = Minute(at=NOW, queued=3, wait_seconds=1.25, workers={"a": 2, "b": 1})
    assert Minute.decode(look.encode()) == look
    assert Minute.decode(Minute(at=NOW).encode()) == Minute(at=NOW)


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"at": 1, "queued": "many", "wait": null, "workers": {}}'])
def test_something_else_is_no_look(payload: bytes) -> None:
    with pytest.raises((ValueError, KeyError, TypeError)):
        Minute.decode(payload)


def test_a_look_keeps_the_models_with_the_most_workers_alone() -> None:
    workers = {f"m{number}": number for number in range(1, MOST_MODELS + 11)}
    kept = Minute.decode(Minute(at=NOW, workers=workers).encode()).workers
    assert len(kept) == MOST_MODELS
    assert min(kept.values()) == 11


def test_the_hour_ends_now_and_has_gaps_where_nobody_looked() -> None:
    looks = [Minute(at=NOW, queued=1), Minute(at=NOW - MINUTES + 1, queued=2), Minute(at=NOW - MINUTES, queued=3)]
    hour = last_hour(looks, NOW)
    assert len(hour) == MINUTES
    assert [None if look is None else look.queued for look in (hour[0], hour[1], hour[-1])] == [2, None, 1]


def test_the_leading_models_are_those_that_ever_had_the_most_workers() -> None:
    hour = [Minute(at=1, workers={"gone": 9, "few": 1}), None, Minute(at=3, workers={"many": 5, "few": 2})]
    assert leading_models(hour, 2) == ("gone", "many")
    assert leading_models([None], 2) == ()
