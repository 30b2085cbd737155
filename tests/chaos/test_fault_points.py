"""A process dies at every named point, once; nothing is lost there and nothing is done twice."""

from dataclasses import dataclass

import openai
import pytest

from config.fault_points import FaultPoint
from tests.flows.images.test_image_fault_points import MEDIA_POINTS
from tests.support.asking import Asking
from tests.support.horde import KEYS, HordeProcesses
from tests.support.services import wait_until


@dataclass(frozen=True)
class Case:
    """Where a point is reached, by what request, and whether its client can still be answered."""

    process: str
    text: str = "Die at"
    answered: bool = True
    charges: int = 1
    slow_workers: bool = True


CASES = {
    FaultPoint.REQUEST_STORED: Case("web"),
    FaultPoint.REQUEST_SIGNALLED: Case("web"),
    FaultPoint.GENERATION_LEASED: Case("web"),
    FaultPoint.LEASE_WRITTEN: Case("web"),
    FaultPoint.REPLY_STORED: Case("web"),
    FaultPoint.VERDICT_DISPATCHED: Case("web"),
    FaultPoint.FAULT_STORED: Case("web", "[[status=500]]Die at", answered=False, charges=0),
    FaultPoint.VERIFICATION_BEGUN: Case("verdict"),
    FaultPoint.VERDICT_STORED: Case("verdict"),
    FaultPoint.VERDICT_SIGNALLED: Case("verdict"),
    FaultPoint.SETTLEMENT_STORED: Case("tasks"),
    FaultPoint.BALANCES_FOLDED: Case("tasks"),
    FaultPoint.RESERVATION_STORED: Case("web", slow_workers=False),
    FaultPoint.FRONT_SUBMITTED: Case("front", answered=False),
    FaultPoint.FRONT_ANSWER_READ: Case("front", answered=False),
}
CANCELS = {FaultPoint.CANCEL_STORED: "web", FaultPoint.FRONT_CANCELLED: "front"}


def test_every_point_has_its_case() -> None:
    elsewhere = {FaultPoint.TRANSFER_STORED, FaultPoint.PROGRESS_POSTED}
    assert CASES.keys() | CANCELS.keys() | MEDIA_POINTS.keys() | elsewhere == set(FaultPoint)


def revive(horde: HordeProcesses, name: str) -> None:
    """Start a process again if its fault took it down whole; Celery and Granian replace a dead child themselves."""
    if not horde.is_alive(name):
        horde.start(name)


def fired(horde: HordeProcesses, point: FaultPoint) -> bool:
    return any(horde.folder.glob(f"{point.value}.*.fired"))


@pytest.mark.parametrize("point", CASES, ids=lambda point: point.value)
def test_nothing_is_lost_or_doubled_when_a_process_dies_at(horde: HordeProcesses, point: FaultPoint) -> None:
    case = CASES[point]
    horde.restart(case.process, fault=point)
    horde.wait_ready()
    with Asking(horde, f"{case.text} {point.value}.", slow_workers=case.slow_workers) as asking:
        wait_until(lambda: fired(horde, point), 30, f"{point.value} was not reached")
        if case.process == "front":
            wait_until(lambda: not horde.is_alive("front"), 10, "the front lives on")
        revive(horde, case.process)
        if case.answered:
            assert asking.answer().choices[0].message.content == f"{case.text} {point.value}."
        else:
            with pytest.raises((openai.APIConnectionError, openai.InternalServerError)):
                asking.answer()
        wait_until(lambda: not open_requests(asking), 60, "the request does not end")
    horde.require_sound()
    assert len(asking.request_states()) == 1
    assert asking.charges() == case.charges


@pytest.mark.parametrize("point", CANCELS, ids=lambda point: point.value)
def test_a_cancel_is_whole_when_a_process_dies_at(horde: HordeProcesses, point: FaultPoint) -> None:
    name = CANCELS[point]
    horde.restart(name, fault=point)
    horde.wait_ready()
    text = f"[[delay=2]]Leave at {point.value}."
    with pytest.raises(openai.APIError):
        horde.openai(timeout=1).chat.completions.create(model="scripted", messages=[{"role": "user", "content": text}])
    wait_until(lambda: fired(horde, point), 30, f"{point.value} was not reached")
    if name == "front":
        wait_until(lambda: not horde.is_alive("front"), 10, "the front lives on")
    revive(horde, name)
    horde.wait_ready()
    asking = Asking(horde, text)
    wait_until(lambda: asking.charges() == 1, 30, "the worker that had begun is not paid")
    assert asking.request_states() == ["cancelled"]
    horde.require_sound()


def test_a_transfer_is_whole_and_repeated_once_when_a_process_dies_after_it(horde: HordeProcesses) -> None:
    point = FaultPoint.TRANSFER_STORED
    horde.restart("web", fault=point)
    horde.wait_ready()
    [(worker_owner,)] = horde.query("SELECT id FROM users WHERE username = 'worker'")
    body = {"username": f"worker#{worker_owner}", "amount": 12.5}
    headers = {"Idempotency-Key": "the-one-transfer"}
    assert horde.call("POST", "/api/v2/kudos/transfer", KEYS.demo, body, headers).status != 200
    wait_until(lambda: fired(horde, point), 10, f"{point.value} was not reached")
    revive(horde, "web")
    horde.wait_ready()
    again = horde.call("POST", "/api/v2/kudos/transfer", KEYS.demo, body, headers)
    assert (again.status, again.body) == (200, {"transferred": 12.5})
    moved = horde.query(
        "SELECT e.amount FROM ledger_entries e JOIN kudos_transfers t ON e.business_key = 'transfer:' || t.id"
        " WHERE t.idempotency_key = 'the-one-transfer' ORDER BY e.amount"
    )
    assert moved == [(-12_500,), (12_500,)]
    horde.require_sound()


def open_requests(asking: Asking) -> list[str]:
    return [state for state in asking.request_states() if state in {"queued", "processing"}]
