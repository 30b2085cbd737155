"""The object store stalls or goes away, the decoder is killed: nothing is lost and nobody else waits (I4, I7, D13)."""

import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import orjson
import psutil
import pytest

from tests.flows.images.seeing import REPLY, Seeing, fetched, images_in
from tests.support.hand_worker import Answered, call
from tests.support.horde import HordeProcesses
from tests.support.pictures import data_url, noise, opened, picture
from tests.support.services import wait_until
from tests.support.tcp_proxy import TcpProxy

SMALL = data_url(picture())


def children_of(horde: HordeProcesses, name: str) -> list[psutil.Process]:
    """Every process under one of the horde's, itself first."""
    first = psutil.Process(horde.running[name].pid)
    return [first, *first.children(recursive=True)]


def is_decoder(process: psutil.Process) -> bool:
    """Whether this process decodes; one that has just ended does not."""
    with suppress(psutil.NoSuchProcess):
        return "app.adapters.decoder_child" in process.cmdline()
    return False


def decoders_of(horde: HordeProcesses, name: str = "media") -> list[psutil.Process]:
    """The processes that decode."""
    return [each for each in children_of(horde, name) if is_decoder(each)]


def test_a_submit_is_refused_while_the_store_is_away_and_nothing_is_kept(seeing: Seeing, store: TcpProxy) -> None:
    seeing.worker("url")
    key = f"away-{seeing.model}-padded-long"
    before = seeing.horde.query("SELECT count(*) FROM horde_requests")
    with store.down():
        answer = seeing.ask(SMALL, operation_key=key)
        assert (answer.status, answer.body["rc"]) == (503, "storage_unavailable")
        assert seeing.horde.query("SELECT count(*) FROM horde_requests") == before
        assert seeing.horde.query("SELECT 1 FROM operation_keys WHERE key = :key", key=key) == []

    def accepted() -> bool:
        return seeing.ask(SMALL, operation_key=key).status in {200, 202}

    wait_until(accepted, 30, "the key cannot be used again")
    [(request_id,)] = seeing.horde.query("SELECT request_id FROM operation_keys WHERE key = :key", key=key)
    seeing.cancel(str(request_id))


def test_text_goes_on_while_the_store_is_away(seeing: Seeing, store: TcpProxy) -> None:
    worker = seeing.worker("url")
    with store.down():
        accepted = seeing.ask(text="No picture.")
        job = worker.wait_for_job()
        assert worker.submit(job["id"], REPLY).status == 200
        seeing.wait_for(accepted.body["id"], "done")


def test_a_request_outlives_an_outage_while_its_images_are_prepared(seeing: Seeing, store: TcpProxy) -> None:
    worker = seeing.worker("url")
    horde = seeing.horde
    horde.kill("media")
    accepted = seeing.ask(SMALL)
    with store.down():
        horde.start("media")
        query = "SELECT 1 FROM request_media WHERE request_id = :id AND failures > 0"
        wait_until(lambda: bool(horde.query(query, id=accepted.body["id"])), 60, "nobody met the outage")
        assert seeing.status(accepted.body["id"])["state"] == "preparing"
    job = worker.wait_for_job()
    assert opened(images_in(job)[0]).size == (64, 48)
    worker.submit(job["id"], REPLY)
    seeing.wait_for(accepted.body["id"], "done")


@pytest.mark.slow
def test_an_outage_that_lasts_faults_the_request_and_charges_nothing(seeing: Seeing, store: TcpProxy) -> None:
    seeing.worker("url")
    horde = seeing.horde
    horde.kill("media")
    accepted = seeing.ask(SMALL)
    with store.down():
        horde.start("media", STORAGE_PATIENCE_SECONDS="2")
        status = seeing.wait_for(accepted.body["id"], "faulted", seconds=60)
    horde.restart("media")
    assert status["fault"]["rc"] == "storage_unavailable"
    assert status["kudos"] == 0


def test_a_job_for_a_worker_that_needs_bytes_is_given_back_while_the_store_is_away(
    seeing: Seeing, store: TcpProxy
) -> None:
    worker = seeing.worker("base64")
    accepted = seeing.ask(SMALL)
    seeing.wait_for(accepted.body["id"], "queued")
    with store.down():
        assert worker.pop() is None
        status = seeing.status(accepted.body["id"])
        assert (status["state"], status["restarted"]) == ("queued", 0)
    job = worker.wait_for_job()
    worker.submit(job["id"], REPLY)
    assert seeing.wait_for(accepted.body["id"], "done")["restarted"] == 0


def test_objects_are_deleted_once_the_store_is_back(seeing: Seeing, store: TcpProxy) -> None:
    seeing.worker("url")
    accepted = seeing.ask(SMALL)
    seeing.wait_for(accepted.body["id"], "queued")
    query = "SELECT 1 FROM request_media WHERE request_id = :id"
    with store.down():
        seeing.cancel(accepted.body["id"])
        assert seeing.horde.query(query, id=accepted.body["id"])
    wait_until(lambda: not seeing.horde.query(query, id=accepted.body["id"]), 40, "its objects are not deleted")


def test_a_pop_that_is_held_while_the_store_is_away_is_woken_when_it_is_back(seeing: Seeing, store: TcpProxy) -> None:
    worker = seeing.worker("base64")
    accepted = seeing.ask(SMALL)
    seeing.wait_for(accepted.body["id"], "queued")
    with ThreadPoolExecutor(1) as pool:
        with store.down():
            assert worker.pop() is None
            begun = time.monotonic()
            held = pool.submit(worker.held_pop, 25)
        job = held.result(40)
    assert job is not None
    assert time.monotonic() - begun < 20, "it was answered at the end of its wait"
    worker.submit(job["id"], REPLY)
    seeing.wait_for(accepted.body["id"], "done")


def test_an_outage_during_an_offload_delays_it_and_keeps_no_worker_waiting(seeing: Seeing, store: TcpProxy) -> None:
    whole = seeing.worker("messages_url", "url")
    horde, text = seeing.horde, "All work and no play makes Jack a dull boy. " * 480
    failed = "SELECT 1 FROM request_media WHERE request_id = :id AND failures > 0 AND offloaded_at IS NULL"
    with store.down():
        first, second = (seeing.ask(text=text).body["id"] for _ in range(2))
        for request_id in (first, second):
            wait_until(lambda request_id=request_id: bool(horde.query(failed, id=request_id)), 30, "no outage met")  # type: ignore[misc]
        job = whole.wait_for_job()
        assert job["payload"]["messages"][0]["content"][0]["text"] == text
        assert whole.submit(job["id"], REPLY).status == 200
        seeing.wait_for(first, "done")
    offloaded = "SELECT 1 FROM request_media WHERE request_id = :id AND offloaded_at IS NOT NULL"
    wait_until(lambda: bool(horde.query(offloaded, id=second)), 40, "the offload is not taken up again")
    job = whole.wait_for_job()
    assert orjson.loads(fetched(job["payload"]["messages_url"]))["messages"][0]["content"][0]["text"] == text
    whole.submit(job["id"], REPLY)
    seeing.wait_for(second, "done")


@pytest.mark.slow
def test_pops_go_on_while_the_store_stalls(seeing: Seeing, store: TcpProxy) -> None:
    worker, needy = seeing.worker("url", name="other"), seeing.worker("base64", name="needy")
    worker.declared["chat_features"] = ["prompt_overflow_refused"]
    accepted = seeing.ask(SMALL)
    seeing.wait_for(accepted.body["id"], "queued")
    with ThreadPoolExecutor(40) as pool, store.stalled():
        begun = time.monotonic()
        stuck = [pool.submit(needy.pop)] + [pool.submit(seeing.ask, SMALL) for _ in range(32)]
        pops = 0
        while time.monotonic() - begun < 10:
            assert worker.pop() is None
            pops += 1
        answers = [future.result(60) for future in stuck[1:]]
    assert {answer.status for answer in answers if isinstance(answer, Answered)} == {503}
    assert pops >= 10
    assert seeing.status(accepted.body["id"])["restarted"] == 0
    job = needy.wait_for_job()
    needy.submit(job["id"], REPLY)
    seeing.wait_for(accepted.body["id"], "done")


PHOTO = data_url(noise((2400, 2000), quality=20), "image/jpeg")


def deaths(horde: HordeProcesses) -> int:
    """How many decoders died over an image."""
    return (horde.folder / "media.log").read_text(errors="replace").count('"decoder.died"')


def with_decoder(seeing: Seeing) -> HordeProcesses:
    """The horde, its media process with a decoder that waits for work."""
    accepted = seeing.ask(SMALL)
    seeing.wait_for(accepted.body["id"], "queued")
    seeing.cancel(accepted.body["id"])
    return seeing.horde


def caught_in_mid_decode(decoder: psutil.Process, size: int, before: tuple[int, int]) -> None:
    """Stop a decoder that has read the whole image and has not answered: only decoding lies between."""
    read, written = before
    deadline = time.monotonic() + 30
    while decoder.io_counters().read_chars < read + size:
        assert time.monotonic() < deadline, "the decoder never got the image"
    decoder.suspend()
    assert decoder.io_counters().write_chars == written, "the decoder has answered already"


def test_a_decoder_that_is_killed_in_mid_decode_costs_nothing(seeing: Seeing) -> None:
    worker = seeing.worker("url")
    horde = with_decoder(seeing)
    [decoder] = decoders_of(horde)
    before, figures = deaths(horde), decoder.io_counters()
    large = picture(size=(5000, 4900))
    accepted = seeing.ask(data_url(large))
    caught_in_mid_decode(decoder, len(large), (figures.read_chars, figures.write_chars))
    assert seeing.status(accepted.body["id"])["state"] == "preparing"
    decoder.kill()
    job = worker.wait_for_job()
    assert opened(images_in(job)[0]).size == (2048, 2007)
    worker.submit(job["id"], REPLY)
    assert seeing.wait_for(accepted.body["id"], "done")["restarted"] == 0
    assert deaths(horde) == before + 1


@pytest.mark.slow
def test_images_that_hang_every_decoder_fault_their_request_after_the_attempts(seeing: Seeing) -> None:
    seeing.worker("url")
    horde = with_decoder(seeing)
    before = deaths(horde)
    for decoder in decoders_of(horde):
        decoder.suspend()
    accepted = seeing.ask(*[PHOTO] * 8)
    assert accepted.status == 202, accepted

    def ended() -> bool:
        for decoder in decoders_of(horde):
            decoder.kill()
        return bool(seeing.status(accepted.body["id"])["state"] == "faulted")

    wait_until(ended, 90, "the request does not end")
    assert seeing.status(accepted.body["id"])["fault"]["rc"] == "image_unusable"
    assert deaths(horde) == before + 3


@pytest.mark.slow
def test_a_media_process_that_is_killed_whole_loses_nothing(seeing: Seeing) -> None:
    worker = seeing.worker("url")
    horde = with_decoder(seeing)
    for decoder in decoders_of(horde):
        decoder.suspend()
    accepted = seeing.ask(PHOTO)
    begun = "SELECT 1 FROM request_media WHERE request_id = :id AND attempts = 1"
    wait_until(lambda: bool(horde.query(begun, id=accepted.body["id"])), 30, "no attempt begins")
    horde.restart("media")
    job = worker.wait_for_job(60)
    worker.submit(job["id"], REPLY)
    seeing.wait_for(accepted.body["id"], "done")
    generations = "SELECT count(*) FROM generations WHERE request_id = :id"
    assert horde.query(generations, id=accepted.body["id"]) == [(1,)]


def resident(horde: HordeProcesses, name: str) -> int:
    """Bytes of memory of a process and its children."""
    found = 0
    for process in children_of(horde, name):
        with suppress(psutil.NoSuchProcess):
            found += process.memory_info().rss
    return found


SUBMITS = 200
PREPARED_AT_LEAST = 12
MEDIA_CAP = 700 * 2**20


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_two_hundred_submits_at_once_keep_the_media_process_small(seeing: Seeing) -> None:
    """Twelve megapixels each: half as PNG, which is decoded whole, half as JPEG with a photograph's detail."""
    seeing.worker("url")
    horde = seeing.horde
    horde.query("UPDATE users SET concurrency = 1000")
    bodies = [
        orjson.dumps(seeing.body(url))
        for url in (
            data_url(picture(size=(4000, 3000))),
            data_url(noise((4000, 3000), quality=10), "image/jpeg"),
        )
    ]

    def ask(number: int) -> str:
        answers: list[Answered] = []

        def taken() -> bool:
            answers.append(call("POST", f"{horde.native}/api/v2/generate/chat/async", bodies[number % 2]))
            return answers[-1].status == 202

        wait_until(taken, 200, "a submit is never taken")
        return str(answers[-1].body["id"])

    def prepared() -> int:
        [(count,)] = horde.query("SELECT count(*) FROM queue_entries q JOIN request_media m USING (request_id)")
        return int(str(count))

    peaks: list[int] = []
    with ThreadPoolExecutor(SUBMITS) as pool:
        asked = [pool.submit(ask, number) for number in range(SUBMITS)]
        while not all(future.done() for future in asked) or prepared() < PREPARED_AT_LEAST:
            peaks.append(resident(horde, "media"))
            assert decoders_of(horde, "web") == []
            time.sleep(0.2)
    assert max(peaks) < MEDIA_CAP, f"{max(peaks) / 2**20:.0f} MiB"
    for future in asked:
        seeing.cancel(future.result())


def test_no_web_process_can_decode_an_image(horde: HordeProcesses) -> None:
    loaded = [each.path for process in children_of(horde, "web") for each in process.memory_maps()]
    assert loaded
    assert not [path for path in loaded if "PIL" in path]
