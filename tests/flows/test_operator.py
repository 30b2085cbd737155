"""What an operator does on a running horde, by the command, and what clients meet then."""

import secrets
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from uuid import uuid4

import openai
import orjson
import pytest
from openai.types.chat import ChatCompletionMessageParam

from app.services.accounts import digest
from tests.front.process.front_process import running_front
from tests.support.horde import KEYS, MODEL, ROOT, Answer, HordeProcesses
from tests.support.services import wait_until


def run(horde: HordeProcesses, *words: str) -> Any:
    """Run a `horde` command beside the running processes: what it printed as JSON."""
    ran = subprocess.run(
        [sys.executable, "-c", "from cli.main import main; main()", *words, "--json"],
        cwd=ROOT,
        env=horde._environment("web"),
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr.decode()
    return orjson.loads(ran.stdout)


@pytest.fixture
def ann(horde: HordeProcesses) -> dict[str, Any]:
    """An account with a key and kudos: `id`, `alias`, `api_key`."""
    made: dict[str, Any] = run(horde, "user", "create", "ann")
    run(horde, "kudos", "grant", str(made["id"]), "1000")
    return made


@pytest.fixture
def proxied_front(horde: HordeProcesses, tmp_path: Path) -> Iterator[str]:
    """The URL of a front behind one trusted proxy."""
    settings = {"SERVICE_PASSKEY": KEYS.service_passkey, "TRUSTED_PROXIES": "1"}
    with running_front(tmp_path, horde.native, horde.services.redis_url, **settings) as front:
        yield front.url


def ask(horde: HordeProcesses, key: str) -> str | None:
    answer = horde.openai(key).chat.completions.create(
        model=MODEL, messages=[{"role": "user", "content": f"Hello {uuid4().hex}."}]
    )
    return answer.choices[0].message.content


def test_a_banned_account_is_told_so_by_the_openai_client_until_the_ban_ends(
    horde: HordeProcesses, ann: dict[str, Any]
) -> None:
    key = ann["api_key"]
    assert ask(horde, key)
    run(horde, "ban", "user", ann["alias"], "--reason", "It floods the queue.", "--hours", "3")
    with pytest.raises(openai.PermissionDeniedError) as refusal:
        ask(horde, key)
    assert refusal.value.code == "UserBanned"
    assert "It floods the queue. Ask the operator" in refusal.value.message
    assert horde.call("GET", "/api/v2/find_user", key).status == 403
    run(horde, "unban", "user", ann["alias"])
    assert ask(horde, key)


def test_a_ban_ends_a_wait_that_is_under_way(horde: HordeProcesses, ann: dict[str, Any]) -> None:
    client = horde.openai(ann["api_key"])
    messages: list[ChatCompletionMessageParam] = [{"role": "user", "content": f"[[delay=5]]Banned {uuid4().hex}."}]
    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(client.chat.completions.create, model=MODEL, messages=messages)
        wait_until(lambda: states(horde, ann) == ["processing"], 30, "the request is at no worker")
        banned = run(horde, "ban", "user", ann["alias"])
        told = time.monotonic()
        with pytest.raises(openai.InternalServerError) as failure:
            asking.result(30)
        assert time.monotonic() - told < 2
    assert (banned["cancelled_requests"], banned["jobs_given_back"]) == (1, 0)
    assert failure.value.code == "NoGeneration"
    assert states(horde, ann) == ["cancelled"]


def test_a_passkey_is_rotated_without_a_moment_in_which_nobody_can_ask(horde: HordeProcesses) -> None:
    ((service,),) = horde.query("SELECT id FROM users WHERE kind = 'service' AND passkey_sha256 IS NOT NULL")
    try:
        rotated = run(horde, "passkey", "rotate", str(service))
        assert ask(horde, KEYS.demo), "the front with the old passkey"
        horde.restart("front", SERVICE_PASSKEY=rotated["passkey"])
        horde.wait_ready()
        assert ask(horde, KEYS.demo), "the front with the new one"
        run(horde, "passkey", "retire", str(service))
        wait_until(lambda: not is_good(horde, KEYS.service_passkey), 15, "the old passkey is still good")
        assert ask(horde, KEYS.demo), "the new one alone"
    finally:
        stored = digest(KEYS.service_passkey)
        horde.query(
            "UPDATE users SET passkey_sha256 = :stored, previous_passkey_sha256 = NULL WHERE id = :id",
            stored=stored,
            id=service,
        )
        horde.restart("front")
        horde.wait_ready()


def test_an_erased_person_leaves_no_text_and_no_key(horde: HordeProcesses, ann: dict[str, Any]) -> None:
    assert ask(horde, ann["api_key"])
    wait_until(lambda: states(horde, ann) == ["done"] and not texts_in_use(horde, ann), 30, "the reply is not settled")
    assert run(horde, "user", "erase", ann["alias"], "--yes")["texts_left"] == 0
    with pytest.raises(openai.AuthenticationError):
        ask(horde, ann["api_key"])
    kept = horde.query(
        "SELECT count(*) FROM request_bodies b JOIN horde_requests r ON r.id = b.request_id WHERE r.user_id = :id",
        id=ann["id"],
    )
    assert kept == [(0,)]


def test_registrations_are_limited_by_the_clients_address_behind_a_trusted_proxy(
    horde: HordeProcesses, proxied_front: str
) -> None:
    def register(address: str) -> Answer:
        headers = {"Content-Type": "application/x-www-form-urlencoded"}
        return post(f"{proxied_front}/register", b"username=Ann", f"10.1.2.3, {address}", headers)

    horde.restart("web", RATE_LIMITS="true", RATE_REGISTER_PER_HOUR="2")
    try:
        horde.wait_web()
        first, other = f"198.18.{secrets.randbelow(256)}.{secrets.randbelow(256)}", "198.19.0.1"
        assert [register(first).status for _ in range(2)] == [200, 200]
        refused = register(first)
        assert refused.status == 429
        assert 1 <= int(refused.headers["retry-after"]) <= 3600
        assert "Try again in" in refused.body
        assert register(other).status == 200
    finally:
        horde.restart("web")
        horde.wait_ready()


def test_a_banned_network_is_refused_behind_a_trusted_proxy_and_its_neighbours_are_served(
    horde: HordeProcesses, proxied_front: str
) -> None:
    def submit(address: str) -> Answer:
        body = {"model": MODEL, "messages": [{"role": "user", "content": f"Hello {uuid4().hex}."}]}
        headers = {"Content-Type": "application/json", "Authorization": f"Bearer {KEYS.demo}"}
        return post(f"{proxied_front}/v1/chat/completions", orjson.dumps(body), address, headers)

    run(horde, "ban", "address", "203.0.113.0/25", "--reason", "An open proxy.")
    try:
        wait_until(lambda: submit("203.0.113.7").status == 403, 15, "the network is not banned")
        refused = submit("203.0.113.7").body["error"]
        assert (refused["code"], refused["type"]) == ("AddressBanned", "invalid_request_error")
        assert "An open proxy. Call from another one" in refused["message"]
        assert submit("203.0.113.200").status == 200
    finally:
        run(horde, "unban", "address", "203.0.113.0/25")
    wait_until(lambda: submit("203.0.113.7").status == 200, 15, "the network is still banned")


def post(url: str, body: bytes, forwarded_for: str, headers: dict[str, str]) -> Answer:
    """What a proxy gets that passes on a client's call."""
    sent = headers | {"X-Forwarded-For": forwarded_for}
    asked = urllib.request.Request(url, body, sent, method="POST")  # noqa: S310 - a URL of ours
    try:
        with urllib.request.urlopen(asked, timeout=60) as response:  # noqa: S310 - see above
            return Answer.read(response.status, response.read(), dict(response.headers))
    except urllib.error.HTTPError as error:
        with error:
            return Answer.read(error.code, error.read(), dict(error.headers))


def states(horde: HordeProcesses, account: dict[str, Any]) -> list[str]:
    """The states of an account's requests."""
    rows = horde.query("SELECT state FROM horde_requests WHERE user_id = :id ORDER BY created_at", id=account["id"])
    return [str(state) for (state,) in rows]


def texts_in_use(horde: HordeProcesses, account: dict[str, Any]) -> bool:
    """Whether a worker or a judge still has a text of the account's."""
    rows = horde.query(
        "SELECT 1 FROM generations g JOIN horde_requests r ON r.id = g.request_id"
        " WHERE r.user_id = :id AND g.state <> 'settled'",
        id=account["id"],
    )
    return bool(rows)


def is_good(horde: HordeProcesses, passkey: str) -> bool:
    """Whether the native API lets somebody with this passkey speak for an address."""
    headers = {"Proxied-For": "9.9.9.9", "Proxy-Authorization": passkey}
    return horde.call("GET", "/api/v2/status/modes", headers=headers).status == 200
