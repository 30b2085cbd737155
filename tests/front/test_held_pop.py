"""Which waiter a signal wakes."""

from typing import Any

import pytest

from app.domain.capabilities import Declaration, Requirements
from app.domain.redis_keys import QueueSignal
from front.doorbell import Doorbell
from front.held_pop import PASSES, PopQueue, PopWaiter, Wake
from front.metrics import FrontMetrics

WANTED = Requirements(is_chat=True, models=("m",), max_length=64, max_context_length=512)


def declaration(model: str = "m") -> Declaration:
    return Declaration(
        name="w", chat_jobs=True, model_id=model, chat_limits={}, max_length=512, max_context_length=4096
    )


@pytest.fixture
async def queue() -> Any:
    doorbell = Doorbell("redis://127.0.0.1:1/0", FrontMetrics())
    yield PopQueue(doorbell)
    await doorbell.close()


def idle(queue: PopQueue, model: str = "m") -> PopWaiter:
    waiter = queue.join(declaration(model))
    waiter.popping = False
    return waiter


def ring(queue: PopQueue) -> None:
    queue._heard(QueueSignal(1, WANTED.stored()).encode())


async def test_the_oldest_idle_waiter_that_covers_is_woken(queue: PopQueue) -> None:
    foreign, busy, first, second = idle(queue, "other"), queue.join(declaration()), idle(queue), idle(queue)
    ring(queue)
    assert [bool(waiter.pending) for waiter in (foreign, busy, first, second)] == [False, False, True, False]
    ring(queue)
    assert second.pending


async def test_where_all_are_popping_the_oldest_pops_again(queue: PopQueue) -> None:
    first, second = queue.join(declaration()), queue.join(declaration())
    ring(queue)
    assert len(first.pending) == 1
    assert first.rung
    assert not second.pending


async def test_a_wake_that_a_leaving_waiter_did_not_use_goes_to_another(queue: PopQueue) -> None:
    first, second = queue.join(declaration()), idle(queue)
    first.wake(Wake(WANTED))
    queue.leave(first)
    queue.leave(first)
    assert len(second.pending) == 1
    assert len(queue) == 1


async def test_a_wake_is_passed_on_to_later_waiters_only_and_not_for_ever(queue: PopQueue) -> None:
    waiters = [idle(queue) for _ in range(PASSES + 3)]
    ring(queue)
    woken = 0
    for waiter in waiters:
        if not waiter.pending:
            break
        woken += 1
        queue.pass_on(waiter.pending.pop(0), waiter)
    assert woken == PASSES
    assert not any(waiter.pending for waiter in waiters)


@pytest.mark.parametrize("payload", [b"", b"{}", b"[]", b'{"class":1,"requirements":{}}'])
async def test_a_signal_that_cannot_be_read_wakes_nobody(queue: PopQueue, payload: bytes) -> None:
    waiter = idle(queue)
    queue._heard(payload)
    assert not waiter.pending
