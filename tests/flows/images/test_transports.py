"""How images and messages reach a worker: the four leaves, chosen for each generation (ADR 0032, images I5, I6)."""

import orjson
import pytest

from app.adapters.object_store import ObjectStore
from config.settings import Settings
from tests.flows.images.seeing import REPLY, Seeing, fetched, images_in, refused
from tests.support.hand_worker import Json
from tests.support.pictures import data_url, noise, opened, picture
from tests.support.services import wait_until

LONG = "All work and no play makes Jack a dull boy. " * 480


def parts(job: Json) -> list[Json]:
    """The image parts of a job's only message."""
    return [part for part in job["payload"]["messages"][0]["content"] if part["type"] == "image_url"]


def offloaded(seeing: Seeing, request_id: str) -> None:
    """Wait until the request's messages are an object."""
    query = "SELECT 1 FROM request_media WHERE request_id = :id AND offloaded_at IS NOT NULL"
    wait_until(lambda: bool(seeing.horde.query(query, id=request_id)), 20, "the messages are not offloaded")


def test_a_worker_that_declares_url_gets_one_signed_url_an_image(seeing: Seeing) -> None:
    worker = seeing.worker("url", "base64")
    seeing.ask(data_url(picture()), data_url(picture(size=(32, 32))))
    job = worker.wait_for_job()
    urls = [part["image_url"]["url"] for part in parts(job)]
    assert job["payload"]["image_urls"] == urls
    assert [opened(jpeg).size for jpeg in images_in(job)] == [(64, 48), (32, 32)]
    assert all("X-Amz-Expires=120" in url and url.startswith(seeing.horde.services.s3_endpoint_url) for url in urls)
    assert refused(urls[0].partition("?")[0]) in {400, 403}
    assert refused(urls[0].replace("X-Amz-Expires=120", "X-Amz-Expires=999")) == 403
    assert refused(urls[0].replace("/0.jpg", "/1.jpg")) == 403
    worker.submit(job["id"], REPLY)


@pytest.mark.slow
def test_a_signed_url_ends_after_its_life(seeing: Seeing) -> None:
    horde, worker = seeing.horde, seeing.worker("url")
    horde.restart("web", MEDIA_URL_SECONDS="3")
    try:
        horde.wait_ready()
        seeing.ask(data_url(picture()))
        job = worker.wait_for_job()
        [url] = job["payload"]["image_urls"]
        assert refused(url) == 200
        wait_until(lambda: refused(url) != 200, 10, "the URL outlives its time")
        assert refused(url) in {400, 403}
        worker.submit(job["id"], REPLY)
    finally:
        horde.restart("web")
        horde.wait_ready()


def test_a_worker_that_declares_only_base64_gets_the_bytes(seeing: Seeing) -> None:
    worker = seeing.worker("base64")
    seeing.ask(data_url(picture()))
    job = worker.wait_for_job()
    assert parts(job)[0]["image_url"]["url"].startswith("data:image/jpeg;base64,")
    assert "image_urls" not in job["payload"]
    assert opened(images_in(job)[0]).size == (64, 48)
    worker.submit(job["id"], REPLY)


def test_a_worker_without_a_transport_is_not_eligible(seeing: Seeing) -> None:
    blind = seeing.worker("messages_url")
    accepted = seeing.ask(data_url(picture()))
    assert accepted.body["status"]["declaration_gap"]["missing"] == [{"name": "image_transports", "workers": 0}]
    seeing.wait_for(accepted.body["id"], "queued")
    assert blind.pop() is None
    seeing.cancel(accepted.body["id"])


def test_a_retry_goes_by_the_next_workers_transport(seeing: Seeing) -> None:
    by_url, inline = seeing.worker("url", name="linked"), seeing.worker("base64", name="inline")
    accepted = seeing.ask(data_url(picture()))
    first = by_url.wait_for_job()
    assert by_url.submit(first["id"], {"state": "faulted", "fault": "image_fetch_failed"}).status == 200
    second = inline.wait_for_job()
    assert parts(first)[0]["image_url"]["url"].startswith("http://")
    assert parts(second)[0]["image_url"]["url"].startswith("data:")
    inline.submit(second["id"], REPLY)
    assert seeing.wait_for(accepted.body["id"], "done")["restarted"] == 1


def test_long_messages_are_offloaded_for_workers_that_take_them_so(seeing: Seeing) -> None:
    by_url, plain = seeing.worker("messages_url", name="whole"), seeing.worker("url", name="plain")
    accepted = seeing.ask(text=LONG)
    offloaded(seeing, accepted.body["id"])
    job = by_url.wait_for_job()
    assert "messages" not in job["payload"]
    url = job["payload"]["messages_url"]
    assert "X-Amz-Expires=120" in url
    sent = orjson.loads(fetched(url))
    assert sent["messages"][0]["content"][0]["text"] == LONG
    by_url.submit(job["id"], {"state": "faulted", "fault": "messages_fetch_failed"})
    # The row keeps the messages, so a worker of another transport gets the same.
    second = plain.wait_for_job()
    assert second["payload"]["messages"] == sent["messages"]
    plain.submit(second["id"], REPLY)
    seeing.wait_for(accepted.body["id"], "done")
    wait_until(lambda: refused(url) in {403, 404}, 30, "the object outlives its request")


def test_offloaded_messages_hold_their_images(seeing: Seeing) -> None:
    worker = seeing.worker("messages_url", "base64")
    accepted = seeing.ask(data_url(noise((300, 300))))
    offloaded(seeing, accepted.body["id"])
    job = worker.wait_for_job()
    assert "messages_url" in job["payload"]
    assert [opened(jpeg).size for jpeg in images_in(job)] == [(300, 300)]
    worker.submit(job["id"], REPLY)


def test_a_short_conversation_is_not_offloaded(seeing: Seeing) -> None:
    worker = seeing.worker("messages_url", "url")
    seeing.ask(text="Short.")
    job = worker.wait_for_job()
    assert "messages_url" not in job["payload"]
    worker.submit(job["id"], REPLY)


def test_the_same_pop_key_gets_the_same_images_again(seeing: Seeing) -> None:
    worker = seeing.worker("url")
    worker.declared["pop_key"] = f"once-{seeing.model}"
    seeing.ask(data_url(picture()))
    first = worker.wait_for_job()
    second = worker.wait_for_job()
    assert first["id"] == second["id"]
    assert images_in(first) == images_in(second)
    worker.submit(first["id"], REPLY)


def test_the_objects_go_when_the_request_has_ended(seeing: Seeing) -> None:
    worker = seeing.worker("url")
    accepted = seeing.ask(data_url(picture()))
    job = worker.wait_for_job()
    url = job["payload"]["image_urls"][0]
    assert refused(url) == 200
    worker.submit(job["id"], REPLY)
    seeing.wait_for(accepted.body["id"], "done")
    wait_until(lambda: refused(url) in {403, 404}, 30, "the image outlives its request")


def test_objects_that_belong_to_no_request_are_collected(seeing: Seeing) -> None:
    given = seeing.horde.services.environment
    settings = Settings.model_validate({name.lower(): value for name, value in given.items()})
    store, key = ObjectStore(settings), f"media/orphan-{seeing.model}/incoming"
    store.put(key, b"left behind", "application/octet-stream")
    assert store.read(key) == b"left behind"
    wait_until(lambda: not store.keys(key, most=1), 30, "the orphan is still there")


def test_a_repeated_submit_uploads_nothing_again(seeing: Seeing) -> None:
    seeing.worker("url")
    key = f"again-{seeing.model}-padded-long"
    first = seeing.ask(data_url(picture()), operation_key=key)
    seeing.wait_for(first.body["id"], "queued")
    folders = seeing.keys()
    again = seeing.ask(data_url(picture()), operation_key=key)
    assert (again.status, again.body["id"]) == (200, first.body["id"])
    assert seeing.keys() == folders
    other = seeing.ask(data_url(picture(size=(9, 9))), operation_key=key)
    assert (other.status, other.body["rc"]) == (409, "OperationKeyMismatch")
    seeing.cancel(first.body["id"])
