"""Flower, as an operator meets it: behind a password, below a path, with the horde's tasks by name (operations O4)."""

import base64
import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.horde import MODEL, HordeProcesses
from tests.support.services import free_port, wait_until

LOGIN = "operator:a-long-password"
PREFIX = "flower"


class Flower:
    """A client of a running Flower."""

    def __init__(self, port: int) -> None:
        self.root = f"http://127.0.0.1:{port}"

    def get(self, path: str, login: str | None = LOGIN) -> tuple[int, str]:
        """Status and text of a path; status 0 while nobody answers."""
        headers = {} if login is None else {"Authorization": f"Basic {base64.b64encode(login.encode()).decode()}"}
        asked = urllib.request.Request(f"{self.root}{path}", headers=headers)  # noqa: S310 - ours
        try:
            with urllib.request.urlopen(asked, timeout=10) as response:  # noqa: S310 - see above
                return response.status, response.read().decode(errors="replace")
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()
        except OSError:
            return 0, ""

    def tasks(self) -> list[dict[str, Any]]:
        """Every task that it has seen."""
        status, text = self.get(f"/{PREFIX}/api/tasks")
        assert status == 200, text
        return list(json.loads(text).values())


@pytest.fixture
def flower(horde: HordeProcesses) -> Iterator[Flower]:
    port = free_port()
    horde.start(
        "flower", FLOWER_BASIC_AUTH=LOGIN, FLOWER_ADDRESS="127.0.0.1", FLOWER_PORT=str(port), FLOWER_URL_PREFIX=PREFIX
    )
    running = Flower(port)
    try:
        wait_until(lambda: running.get(f"/{PREFIX}/")[0] == 200, 60, f"Flower is not there, see {horde.folder}")
        yield running
    finally:
        horde.kill("flower")


def test_nobody_sees_a_task_without_the_password(flower: Flower) -> None:
    for path in ("/", "/tasks", "/workers", "/broker", "/api/tasks", "/api/workers"):
        assert flower.get(f"/{PREFIX}{path}", login=None)[0] == 401, path
        assert flower.get(f"/{PREFIX}{path}", login="operator:another")[0] == 401, path


def test_every_page_and_file_is_below_the_prefix(flower: Flower) -> None:
    assert flower.get("/")[0] == 404
    status, page = flower.get(f"/{PREFIX}/")
    assert status == 200
    local = [link for link in re.findall(r"""(?:href|src)=["'](/[^/"'][^"']*)""", page) if not link.startswith("//")]
    assert local
    assert [link for link in local if not link.startswith(f"/{PREFIX}/")] == []
    static = next(link for link in local if "/static/" in link)
    assert flower.get(static)[0] == 200


def test_tasks_are_shown_by_name_with_state_and_runtime(horde: HordeProcesses, flower: Flower) -> None:
    wanted = {"verdict.verify_generation", "settlement.settle_batch", "upkeep.sweep"}

    def shown() -> set[str]:
        horde.openai().chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "Hello."}])
        return {task["name"] for task in flower.tasks() if task["state"] == "SUCCESS" and task["runtime"] > 0}

    wait_until(lambda: wanted <= shown(), 60, "Flower does not show the tasks of a chat")


def test_every_task_process_is_shown(flower: Flower) -> None:
    def names() -> set[str]:
        status, text = flower.get(f"/{PREFIX}/api/workers?refresh=1")
        return {name.partition("@")[0] for name in json.loads(text)} if status == 200 else set()

    wait_until(lambda: {"verdict", "tasks", "media"} <= names(), 60, "a task process is not shown")
