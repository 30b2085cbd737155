"""The status page as a browser without scripts gets it, and its events."""

import re
from dataclasses import replace

import orjson
import pytest
from flask.testing import FlaskClient
from werkzeug.test import TestResponse

from app.adapters.database import STATEMENTS, Database
from app.factory import create_app
from app.services import status_page
from app.services.history import note_minute
from app.services.incidents import set_incident
from app.services.refresh_queue import refresh_queue
from app.services.statistics import count_generations
from app.services.verify_generation import verify_generation
from tests.app.services.conftest import World
from tests.support.services import free_port


def figure(page: str, name: str) -> str:
    """The value beside a name among the figures."""
    found = re.search(rf"<dt>{name}</dt><dd>([^<]*) <small>", page)
    assert found is not None, page
    return found[1]


def kudos(client: FlaskClient, key: str) -> TestResponse:
    """Ask for the kudos of a key as the page's form does."""
    return client.post("/status", data={"key": key})


@pytest.mark.parametrize("path", ["/", "/status"])
def test_the_numbers_are_in_the_page_itself(world: World, client: FlaskClient, path: str) -> None:
    _, generation_id = world.leased(max_tokens=64)
    world.deliver(generation_id)
    verify_generation(world.runtime, generation_id)
    world.execute("UPDATE generations SET ended_at = now() - interval '5 seconds' WHERE id = :id", id=generation_id)
    world.execute("UPDATE heartbeats SET at = now() - interval '1 hour' WHERE name = 'statistics'")
    count_generations(world.runtime)
    world.ask(max_tokens=64)
    refresh_queue(world.runtime)
    note_minute(world.runtime)
    answer = client.get(path)
    assert answer.status_code == 200
    names = ("Models online", "Workers online", "Waiting", "Replies")
    assert [figure(answer.text, name) for name in names] == ["1", "1", "1", "1"]
    assert '<th scope="row">m</th><td>chat</td>' in answer.text
    assert answer.text.count('<svg viewBox="0 0 600 120"') == 4
    assert '<p class="soft">Now 1, at most 1.</p>' in answer.text


def test_a_horde_without_anybody_says_so(world: World, client: FlaskClient) -> None:
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 day'")
    page = client.get("/status").text
    assert figure(page, "Models online") == "0"
    assert "No worker is online right now" in page
    assert page.count("Nothing was noted within the hour.") == 2


def test_jobs_for_models_that_nobody_serves_are_told_without_their_names(world: World, client: FlaskClient) -> None:
    world.ask(max_tokens=64)
    world.execute("UPDATE workers SET last_seen_at = now() - interval '1 day'")
    refresh_queue(world.runtime)
    assert "1 waiting job names models that nobody serves." in client.get("/status").text


def test_the_operators_line_is_shown_as_text(world: World, client: FlaskClient) -> None:
    with world.runtime.database.transaction() as transaction:
        set_incident(transaction, "<script>alert(1)</script> is slow")
    page = client.get("/status").text
    assert "<strong>&lt;script&gt;alert(1)&lt;/script&gt; is slow</strong>" in page


def test_names_of_workers_models_are_shown_as_text(world: World, client: FlaskClient) -> None:
    world.pop(models=["<b>m</b>"], prompt_jobs=True)
    page = client.get("/status").text
    assert "<b>m</b>" not in page
    assert "&lt;b&gt;m&lt;/b&gt;" in page


def test_the_kudos_of_a_key_are_shown_without_the_key(world: World, client: FlaskClient) -> None:
    page = kudos(client, f" {world.requester_key} ")
    assert page.status_code == 200
    assert re.search(rf"<strong>ann#{world.requester_id}</strong> has <strong>1,0\d\d</strong> kudos", page.text)
    assert world.requester_key not in page.text
    assert page.headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("key", ["no-such-key-in-the-horde", "", "<b>", "\x00"])
def test_a_key_that_nobody_has_is_answered_in_words(client: FlaskClient, key: str) -> None:
    page = kudos(client, key)
    assert page.status_code == 200
    assert 'class="problem"' in page.text
    assert "kudos.\n" not in page.text


def test_an_event_is_one_line_with_the_part_of_the_page_that_changes(client: FlaskClient) -> None:
    answer = client.get("/status/events")
    assert answer.content_type == "text/event-stream; charset=utf-8"
    retry, event, data, *rest = answer.text.split("\n")
    assert (retry, event, rest) == ("retry: 5000", "event: status", ["", ""])
    html = orjson.loads(data.removeprefix("data: "))["html"]
    changing = re.findall(r'id="([a-z-]+)"[^>]* data-live', html)
    assert changing == ["incident", "figures", "as-of", "charts", "hour-rows", "models"]
    assert re.findall(r'id="([a-z-]+)"[^>]* data-live', client.get("/status").text) == changing


@pytest.mark.parametrize("method", ["GET", "POST"])
def test_without_its_database_the_page_says_so(world: World, method: str) -> None:
    away = world.runtime.settings.model_copy(
        update={"database_url": f"postgresql+psycopg://nobody@127.0.0.1:{free_port()}/none"}
    )
    database = Database(away, pool_size=1, application="test")
    with create_app(replace(world.runtime, database=database)).test_client() as client:
        answer = client.open("/status", method=method, data={"key": "any"} if method == "POST" else None)
        assert (answer.status_code, answer.content_type) == (503, "text/html; charset=utf-8")
        assert "database cannot be reached" in answer.text
        assert client.get("/status/events").status_code == 503
    database.close()


def test_readers_share_a_look(client: FlaskClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(status_page, "FRESH_SECONDS", 3600.0)
    client.get("/status")
    before = STATEMENTS._value.get()
    for _ in range(10):
        assert client.get("/status/events").status_code == 200
    assert STATEMENTS._value.get() == before


def test_a_look_costs_few_statements_however_many_models_there_are(
    world: World, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(5):
        world.pop(name=f"box {number}", prompt_jobs=True, models=[f"m{number}"])
    monkeypatch.setattr(status_page, "FRESH_SECONDS", 0.0)
    client.get("/status")
    before = STATEMENTS._value.get()
    client.get("/status")
    assert STATEMENTS._value.get() - before <= 5


def test_a_page_of_everybodys_names_has_an_end(
    world: World, client: FlaskClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(status_page, "MOST_MODELS", 3)
    world.pop(prompt_jobs=True, models=[f"m{number}" for number in range(1, 6)])
    page = client.get("/status").text
    assert len(re.findall(r'<th scope="row">m\d?</th>', page)) == 3
    assert "And 3 more with fewer threads." in page


@pytest.mark.parametrize("path", ["/", "/status", "/register", "/terms", "/privacy", "/sponsors"])
def test_every_page_forbids_what_it_does_not_need(client: FlaskClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 200
    assert answer.content_type == "text/html; charset=utf-8"
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "unsafe" not in policy
    assert answer.headers["Referrer-Policy"] == "no-referrer"


def test_the_fronts_pages_are_named_where_a_front_passed_the_call_on(client: FlaskClient) -> None:
    assert 'href="/chat"' not in client.get("/status").text


def test_the_operators_privacy_notice_is_a_page(client: FlaskClient) -> None:
    assert "<h1>Privacy</h1>" in client.get("/privacy").text


def test_files_of_pages_are_kept_and_others_are_not_there(client: FlaskClient) -> None:
    answer = client.get("/pages/horde.css")
    assert (answer.status_code, answer.content_type) == (200, "text/css; charset=utf-8")
    assert "immutable" in answer.headers["Cache-Control"]
    assert client.get("/pages/layout.html").status_code == 404
