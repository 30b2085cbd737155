"""Images through the front, with the OpenAI SDK as a developer would use it (front F1, images I2, I5)."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from threading import Event, Thread

import openai
import pytest

from tests.flows.images.seeing import REPLY, Seeing, images_in
from tests.support.file_server import FileServer
from tests.support.hand_worker import HandWorker
from tests.support.pictures import BLUE, RED, data_url, is_near, noise, opened, picture


def always() -> bool:
    """A worker that begins at once."""
    return True


@contextmanager
def serving(worker: HandWorker, begins: Callable[[], bool] = always) -> Iterator[list[list[bytes]]]:
    """A worker before a vision model, which pops once `begins` holds: what the model was given is kept."""
    given: list[list[bytes]] = []
    ended = Event()

    def serve() -> None:
        while not ended.wait(0.1):
            if not begins():
                continue
            # A web process may just be coming back: a worker asks again.
            with suppress(OSError):
                job = worker.pop()
                if job is not None:
                    given.append(images_in(job))
                    worker.submit(job["id"], REPLY)

    thread = Thread(target=serve)
    thread.start()
    try:
        yield given
    finally:
        ended.set()
        thread.join()


@pytest.mark.parametrize("transport", ["url", "base64"])
def test_the_sdk_sends_a_data_url_and_an_http_url_and_gets_its_answer(
    seeing: Seeing, files: FileServer, transport: str
) -> None:
    remote = files.serve("/cat.webp", picture("WEBP", size=(80, 60)), "image/webp")
    content = seeing.body(data_url(picture()), remote)["messages"]
    with serving(seeing.worker(transport)) as given:
        answer = seeing.horde.openai().chat.completions.create(model=seeing.model, messages=content, max_tokens=32)
    assert answer.choices[0].message.content == "I see two colours."
    [[sent, fetched]] = given
    assert (opened(sent).size, opened(fetched).size) == ((64, 48), (80, 60))
    for jpeg in (sent, fetched):
        assert is_near(opened(jpeg).getpixel((30, 4)), RED)
        assert is_near(opened(jpeg).getpixel((30, 44)), BLUE)


def test_a_stream_with_an_image_is_answered(seeing: Seeing) -> None:
    with serving(seeing.worker("url")):
        stream = seeing.horde.openai().chat.completions.create(
            model=seeing.model, messages=seeing.body(data_url(picture()))["messages"], stream=True
        )
        text = "".join(chunk.choices[0].delta.content or "" for chunk in stream if chunk.choices)
    assert text == "I see two colours."


@pytest.mark.parametrize("stream", [False, True])
def test_an_image_that_cannot_be_used_is_a_400_before_any_stream(seeing: Seeing, stream: bool) -> None:
    seeing.worker("url")
    broken = data_url(noise((300, 300))[:2000])
    with pytest.raises(openai.BadRequestError) as refusal:
        seeing.horde.openai().chat.completions.create(
            model=seeing.model, messages=seeing.body(broken)["messages"], stream=stream
        )
    assert refusal.value.code == "image_parse_error"
    assert refusal.value.param == "messages[0].content[1].image_url.url"


def test_a_private_address_is_a_400(seeing: Seeing) -> None:
    seeing.worker("url")
    for url in ("http://169.254.169.254/latest/meta-data/", "http://localhost/x.png", "http://127.1/x.png"):
        with pytest.raises(openai.BadRequestError) as refusal:
            seeing.horde.openai().chat.completions.create(model=seeing.model, messages=seeing.body(url)["messages"])
        assert refusal.value.code == "invalid_image_url"
        assert "not allowed" in refusal.value.message


def test_nothing_of_an_image_or_a_signed_url_is_in_logs_rows_or_messages(seeing: Seeing, files: FileServer) -> None:
    secret = files.serve("/x.png?X-Amz-Signature=very-secret", picture())
    content = seeing.body(data_url(picture()), secret)["messages"]
    with serving(seeing.worker("url")):
        seeing.horde.openai().chat.completions.create(model=seeing.model, messages=content)
    horde = seeing.horde
    logs = "".join(path.read_text(errors="replace") for path in horde.folder.glob("*.log"))
    data = data_url(picture()).partition(",")[2]
    for word in ("X-Amz-", "very-secret", data):
        assert word not in logs
        for table in ("request_media", "request_bodies", "horde_requests", "generations", "replies"):
            rows = horde.query(f"SELECT 1 FROM {table} t WHERE strpos(t::text, :word) > 0", word=word)  # noqa: S608
            assert rows == [], (word, table)


def test_a_large_body_without_an_image_is_refused_by_the_front(seeing: Seeing) -> None:
    seeing.worker("url")
    with pytest.raises(openai.APIStatusError) as refusal:
        seeing.horde.openai().chat.completions.create(
            model=seeing.model, messages=[{"role": "user", "content": "x" * (11 * 2**20)}]
        )
    assert refusal.value.status_code == 413
