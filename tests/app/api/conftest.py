"""The native API over a real database and a real Valkey, called as HTTP without a process."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from flask.testing import FlaskClient

from app.factory import create_app
from app.services.accounts import Role, set_role
from tests.app.services.conftest import World, redis, runtime, settings, world

__all__ = ["redis", "runtime", "settings", "world"]

Call = Callable[..., Any]


@pytest.fixture
def client(world: World) -> Iterator[FlaskClient]:
    """The native API of this test's horde."""
    with create_app(world.runtime).test_client() as made:
        yield made


@pytest.fixture
def get(client: FlaskClient) -> Call:
    """Read a route that answers 200."""

    def read(path: str, key: str | None = None) -> Any:
        answer = client.get(f"/api/v2{path}", headers={"apikey": key} if key else {})
        assert answer.status_code == 200, answer.text
        return answer.json

    return read


@pytest.fixture
def refused(client: FlaskClient) -> Call:
    """Call a route that refuses: its status and return code."""

    def call(method: str, path: str, key: str | None = None, body: Any = None) -> tuple[int, str | None]:
        headers = {"apikey": key} if key else {}
        answer = client.open(f"/api/v2{path}", method=method, headers=headers, json=body)
        assert isinstance(answer.get_json()["message"], str)
        return answer.status_code, answer.get_json().get("rc")

    return call


@pytest.fixture
def moderator_key(world: World) -> str:
    """The key of a moderator."""
    user_id, key = world.account("moderator")
    with world.runtime.database.transaction() as transaction:
        set_role(transaction, user_id, Role.MODERATOR, held=True)
    return key


@pytest.fixture
def worker_id(world: World) -> str:
    """The id of the world's worker."""
    return str(world.pop().worker_id)
