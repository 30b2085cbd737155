"""A process dies at every named point that images and offload have; the request is answered and charged once."""

from collections.abc import Iterator
from contextlib import contextmanager
from threading import Event, Thread

import openai
import pytest

from config.fault_points import FaultPoint
from tests.flows.images.seeing import REPLY, Seeing
from tests.flows.images.test_front import always, serving
from tests.support.file_server import FileServer
from tests.support.horde import HordeProcesses
from tests.support.pictures import data_url, noise, picture
from tests.support.services import wait_until

MEDIA_POINTS = {
    FaultPoint.IMAGES_STAGED: "web",
    FaultPoint.IMAGES_BEGUN: "media",
    FaultPoint.IMAGES_FETCHED: "fetch",
    FaultPoint.IMAGE_STORED: "media",
    FaultPoint.IMAGES_PREPARED: "media",
    FaultPoint.MESSAGES_OFFLOADED: "media",
    FaultPoint.OBJECTS_DELETED: "media",
}


@contextmanager
def kept_running(horde: HordeProcesses, name: str) -> Iterator[None]:
    """Start a process again when it ends whole, as every host does; most only lose a child, and replace it."""
    ended = Event()

    def watch() -> None:
        while not ended.wait(0.2):
            if not horde.is_alive(name):
                horde.start(name)

    thread = Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


@pytest.mark.slow
@pytest.mark.parametrize("point", MEDIA_POINTS, ids=lambda point: point.value)
def test_a_request_with_images_is_answered_once_when_a_process_dies_at(
    seeing: Seeing, files: FileServer, point: FaultPoint
) -> None:
    horde, name = seeing.horde, MEDIA_POINTS[point]
    horde.restart(name, fault=point)
    horde.wait_ready()
    url = data_url(noise((300, 300))) if point is FaultPoint.MESSAGES_OFFLOADED else data_url(picture())
    if point is FaultPoint.IMAGES_FETCHED:
        url = files.serve("/once.png", picture())

    def fired() -> bool:
        return any(horde.folder.glob(f"{point.value}.*.fired"))

    # What is answered is not offloaded any more.
    begins = fired if point is FaultPoint.MESSAGES_OFFLOADED else always
    with kept_running(horde, name), serving(seeing.worker("messages_url", "base64"), begins):
        body = seeing.body(url)["messages"]
        client = horde.openai(timeout=90)
        try:
            answer = client.chat.completions.create(model=seeing.model, messages=body, max_tokens=32)
        except openai.InternalServerError:
            # Nothing was stored yet, and the web process took longer to come back than the front tries.
            assert point is FaultPoint.IMAGES_STAGED
            horde.wait_ready()
            answer = client.chat.completions.create(model=seeing.model, messages=body, max_tokens=32)
        assert answer.choices[0].message.content == REPLY["message"]["content"]
        wait_until(fired, 30, f"{point.value} was not reached")
    charges = (
        "SELECT count(*) FROM ledger_entries e JOIN generations g ON e.business_key = 'generation:' || g.id"
        " WHERE e.kind = 'charge' AND g.model = :model"
    )
    wait_until(lambda: horde.query(charges, model=seeing.model) == [(1,)], 30, "the request is not charged")
    wait_until(lambda: seeing.keys() == [], 40, "objects of an ended request stay")
