"""Remote images: a server that takes its time holds up nobody else's (images I1, I3)."""

import socket
from collections.abc import Iterator
from threading import Event

import pytest

from tests.flows.images.seeing import REPLY, Seeing, images_in
from tests.support.file_server import FileServer
from tests.support.pictures import data_url, opened, picture
from tests.support.services import wait_until

SLOW_REQUESTS = 20
"""More than the fetching process has threads."""


@pytest.fixture
def patience() -> Iterator[Event]:
    """Ends the wait of every connection to the slow server."""
    event = Event()
    yield event
    event.set()


def test_a_slow_host_holds_up_neither_sent_images_nor_those_of_other_hosts(
    seeing: Seeing, files: FileServer, others: FileServer, patience: Event
) -> None:
    seeing.worker("url")
    asked_by: list[int] = []

    def wait(connection: socket.socket) -> None:
        asked_by.append(connection.fileno())
        patience.wait(60)

    files.answers["/slow.png"] = wait
    seeing.horde.query("UPDATE users SET concurrency = 1000")
    slow = [seeing.ask(files.url("/slow.png")).body["id"] for _ in range(SLOW_REQUESTS)]
    wait_until(lambda: len(asked_by) >= 4, 60, "the slow server is not asked")
    begun = len(asked_by)
    sent = seeing.ask(data_url(picture())).body["id"]
    remote = seeing.ask(others.serve("/fast.png", picture())).body["id"]
    for request_id in (sent, remote):
        seeing.wait_for(request_id, "queued")
    waiting = [request_id for request_id in slow if seeing.status(request_id)["state"] == "preparing"]
    assert waiting, "the slow server was not slow enough to tell"
    assert begun <= SLOW_REQUESTS // 2
    for request_id in (*slow, sent, remote):
        seeing.cancel(request_id)


def test_everybody_who_waits_for_a_host_gets_a_turn(seeing: Seeing, files: FileServer, patience: Event) -> None:
    worker = seeing.worker("url")
    body = picture()

    def answer(connection: socket.socket) -> None:
        patience.wait(60)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body) + body)

    files.answers["/late.png"] = answer
    seeing.horde.query("UPDATE users SET concurrency = 1000")
    asked = {seeing.ask(files.url("/late.png")).body["id"] for _ in range(12)}
    patience.set()
    for request_id in asked:
        seeing.wait_for(request_id, "queued")
    for _ in asked:
        job = worker.wait_for_job()
        assert opened(images_in(job)[0]).size == (64, 48)
        worker.submit(job["id"], REPLY)
