"""The object store is away for a whole minute, with a request in each phase: none is lost, none doubled (I7)."""

import time

import orjson
import pytest

from app.adapters.object_store import ObjectStore
from config.settings import Settings
from tests.flows.images.seeing import REPLY, Seeing, fetched, images_in
from tests.support.hand_worker import HandWorker, Json
from tests.support.horde import HordeProcesses
from tests.support.pictures import data_url, noise, opened, picture
from tests.support.services import wait_until
from tests.support.tcp_proxy import TcpProxy

MINUTE_SECONDS = 60.0
SMALL = data_url(picture())
LONG = "All work and no play makes Jack a dull boy. " * 480
FOLDER = "SELECT folder FROM request_media WHERE request_id = :id"


def store_of(horde: HordeProcesses) -> ObjectStore:
    """The store itself, past the proxy."""
    given = horde.services.environment
    return ObjectStore(Settings.model_validate({name.lower(): value for name, value in given.items()}))


class Phases:
    """One request in each phase, each of a model of its own so that none takes another's worker."""

    def __init__(self, horde: HordeProcesses) -> None:
        self.horde = horde
        self.store = store_of(horde)
        self.folders: dict[str, str] = {}
        self.seen: dict[str, Seeing] = {}
        self.workers: dict[str, HandWorker] = {}
        self.ids: dict[str, str] = {}

    def begin(self, phase: str, *transports: str, image: str | None = SMALL, text: str = "What is it?") -> None:
        """Submits the request of a phase and makes its worker known."""
        seeing = self.seen[phase] = Seeing(self.horde)
        self.workers[phase] = seeing.worker(*transports)
        answer = seeing.ask(*([image] if image else []), text=text)
        assert answer.status == 202, answer
        self.ids[phase] = answer.body["id"]

    def remember(self, phase: str) -> None:
        """Keeps the name of the request's folder, which goes with its row."""
        [(folder,)] = self.horde.query(FOLDER, id=self.ids[phase])
        self.folders[phase] = str(folder)

    def objects(self, phase: str) -> list[str]:
        """What the store holds of the request of a phase."""
        return [key for key, _ in self.store.keys(f"{self.folders[phase]}/", most=10)]

    def state(self, phase: str) -> Json:
        """Where the request of a phase stands."""
        return self.seen[phase].status(self.ids[phase])

    def wait(self, phase: str, *states: str, seconds: float = 60) -> Json:
        """Waits for its state."""
        return self.seen[phase].wait_for(self.ids[phase], *states, seconds=seconds)

    def serve(self, phase: str) -> Json:
        """Answers the request; the job."""
        job = self.workers[phase].wait_for_job(60)
        assert self.workers[phase].submit(job["id"], REPLY).status == 200
        assert self.wait(phase, "done")["restarted"] == 0
        return job


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_minute_without_the_store_loses_and_doubles_nothing(horde: HordeProcesses, store: TcpProxy) -> None:
    phases = Phases(horde)
    # As deployed: the flows' own patience is as long as this outage.
    horde.restart("media", STORAGE_PATIENCE_SECONDS="300")
    for phase, transport in (("linked", "url"), ("inline", "base64"), ("running", "url"), ("ended", "url")):
        phases.begin(phase, transport)
        phases.wait(phase, "queued")
    job = phases.workers["running"].wait_for_job()
    assert opened(images_in(job)[0]).size == (64, 48)
    horde.kill("media")
    phases.begin("preparing", "url", image=data_url(noise((300, 200))))
    phases.begin("offloading", "messages_url", "url", image=None, text=LONG)
    for phase in phases.ids:
        phases.remember(phase)
        assert bool(phases.objects(phase)) == (phase != "offloading")

    with store.down():
        begun = time.monotonic()
        horde.start("media", STORAGE_PATIENCE_SECONDS="300")
        phases.seen["ended"].cancel(phases.ids["ended"])
        assert phases.workers["running"].submit(job["id"], REPLY).status == 200
        newcomer = Seeing(horde)
        texter = newcomer.worker("url")
        texts = 0
        while time.monotonic() - begun < MINUTE_SECONDS:
            assert newcomer.ask(SMALL).status == 503
            assert phases.workers["inline"].pop() is None
            accepted = newcomer.ask(text="No picture.")
            text = texter.wait_for_job()
            assert texter.submit(text["id"], REPLY).status == 200
            newcomer.wait_for(accepted.body["id"], "done")
            texts += 1
        states = {phase: phases.state(phase)["state"] for phase in phases.ids}
    assert texts >= 10
    assert states == {
        "linked": "queued",
        "inline": "queued",
        "running": "done",
        "ended": "cancelled",
        "preparing": "preparing",
        "offloading": "queued",
    }

    for phase in ("linked", "inline"):
        assert opened(images_in(phases.serve(phase))[0]).size == (64, 48)
    assert opened(images_in(phases.serve("preparing"))[0]).size == (300, 200)
    offloaded = "SELECT 1 FROM request_media WHERE request_id = :id AND offloaded_at IS NOT NULL"
    wait_until(lambda: bool(horde.query(offloaded, id=phases.ids["offloading"])), 60, "the offload is not taken up")
    handed = phases.workers["offloading"].wait_for_job()
    assert orjson.loads(fetched(handed["payload"]["messages_url"]))["messages"][0]["content"][0]["text"] == LONG
    phases.workers["offloading"].submit(handed["id"], REPLY)
    phases.wait("offloading", "done")

    charges = (
        "SELECT count(*) FROM ledger_entries e JOIN generations g ON e.business_key = 'generation:' || g.id"
        " WHERE e.kind = 'charge' AND g.request_id = :id"
    )
    for phase, request_id in phases.ids.items():
        paid = 0 if phase == "ended" else 1
        wait_until(lambda i=request_id, n=paid: horde.query(charges, id=i) == [(n,)], 30, f"{phase} is not paid")  # type: ignore[misc]
    for phase in phases.folders:
        wait_until(lambda phase=phase: not phases.objects(phase), 60, f"objects of {phase} are left")  # type: ignore[misc]
    horde.restart("media")
