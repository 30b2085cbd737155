"""Request threads and a store that stalls: few are caught, and never for long (details D13)."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest

from app.adapters.object_store import ObjectMissing, StoreAway
from app.domain.errors import StorageUnavailable
from app.services import store_gate
from app.services.store_gate import StoreGate


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """The gate with its times made short."""
    monkeypatch.setattr(store_gate, "CALL_SECONDS", 0.5)
    monkeypatch.setattr(store_gate, "STALLED_SECONDS", 0.1)


@pytest.fixture
def flowing() -> Iterator[Event]:
    """What a stalled call waits for."""
    event = Event()
    yield event
    event.set()


def away() -> None:
    raise StoreAway("away")


def test_a_call_gives_back_what_the_store_said() -> None:
    assert StoreGate(16).call(lambda: b"data") == b"data"


def test_a_failed_call_is_refused_with_a_time_to_come_back_and_lets_the_store_rest() -> None:
    gate = StoreGate(16)
    with pytest.raises(StorageUnavailable) as refusal:
        gate.call(away)
    assert refusal.value.retry_after_seconds == 5
    assert gate.is_resting
    with pytest.raises(StorageUnavailable):
        gate.call(lambda: b"never asked")


def test_what_waits_for_the_store_is_done_once_when_its_rest_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store_gate, "REST_SECONDS", 0.3)
    gate, done, rested = StoreGate(16), [], Event()
    with pytest.raises(StorageUnavailable):
        gate.call(away)
    for number in range(3):
        gate.when_rested("one class", lambda number=number: done.append((number, gate.is_resting)))  # type: ignore[misc]
    gate.when_rested("another", rested.set)
    assert done == []
    assert rested.wait(5)
    assert done == [(2, False)]


def test_what_is_missing_is_no_failure_of_the_store() -> None:
    gate = StoreGate(16)

    def missing() -> None:
        raise ObjectMissing("gone")

    with pytest.raises(ObjectMissing):
        gate.call(missing)
    assert not gate.is_resting


@pytest.mark.usefixtures("quick")
def test_a_stalled_store_catches_a_quarter_of_the_threads(flowing: Event) -> None:
    gate, begun = StoreGate(8), []

    def stall() -> None:
        begun.append(1)
        flowing.wait(10)

    def refused() -> bool:
        try:
            gate.call(stall)
        except StorageUnavailable:
            return True
        return False

    with ThreadPoolExecutor(8) as pool:
        assert all(future.result(5) for future in [pool.submit(refused) for _ in range(8)])
    assert len(begun) == 2


@pytest.mark.usefixtures("quick")
def test_newcomers_do_not_wait_behind_a_stalled_call(flowing: Event) -> None:
    gate = StoreGate(4)
    with ThreadPoolExecutor(1) as pool:
        stuck = pool.submit(gate.call, lambda: flowing.wait(10))
        flowing.wait(0.2)
        with pytest.raises(StorageUnavailable):
            gate.call(lambda: True)
        with pytest.raises(StorageUnavailable):
            stuck.result(5)


def test_calls_stand_in_line_while_the_store_answers() -> None:
    gate = StoreGate(4)
    with ThreadPoolExecutor(16) as pool:
        assert all(future.result(10) for future in [pool.submit(gate.call, lambda: True) for _ in range(50)])
