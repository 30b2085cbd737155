"""How many images one process fetches from the same host at once (images I3)."""

from contextlib import ExitStack
from uuid import UUID, uuid4

import pytest

from app.services.fetch_images import HostBusy, HostPlaces


def test_a_host_has_so_many_places_and_other_hosts_have_theirs() -> None:
    places = HostPlaces(lambda _: None, most=2)
    with ExitStack() as held:
        held.enter_context(places.of("slow.example", uuid4()))
        held.enter_context(places.of("slow.example", uuid4()))
        with pytest.raises(HostBusy), places.of("slow.example", uuid4()):
            pass
        held.enter_context(places.of("other.example", uuid4()))
    with places.of("slow.example", uuid4()):
        pass


def test_who_found_no_place_is_called_once_in_turn_as_places_come_free() -> None:
    called: list[UUID] = []
    places, first, second = HostPlaces(called.append, most=1), uuid4(), uuid4()
    with places.of("slow.example", uuid4()):
        for request_id in (first, second, first):
            with pytest.raises(HostBusy), places.of("slow.example", request_id):
                pass
        assert called == []
    assert called == [first]
    with places.of("slow.example", first):
        pass
    assert called == [first, second]
    with places.of("slow.example", second):
        pass
    assert called == [first, second]


def test_a_fetch_that_fails_gives_its_place_back() -> None:
    places = HostPlaces(lambda _: None, most=1)
    with pytest.raises(OSError, match="broken"), places.of("slow.example", uuid4()):
        raise OSError("broken")
    with places.of("slow.example", uuid4()):
        pass
