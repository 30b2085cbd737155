"""One Valkey, one scripted native API and one front for the tests of the front."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import aiohttp
import pytest
import redis

from app.domain.progress_entries import ProgressEntry
from app.domain.redis_keys import QUEUE_CHANNEL, ChatEvent, QueueSignal, chat_channel, chat_event, progress_key
from launcher.services.valkey import Valkey
from tests.front.process.front_process import FrontProcess, running_front, wait_for_redis
from tests.front.process.scripted_native import ScriptedNative
from tests.support.services import RunningService, free_port

QUICK = {
    "DEFAULT_DEADLINE_SECONDS": "4",
    "AVAILABILITY_GRACE_SECONDS": "1",
    "FALLBACK_POLL_SECONDS": "60",
    "KEEP_ALIVE_SECONDS": "0.3",
    "BODY_READ_SECONDS": "1",
    "BODY_LIMIT_BYTES": "100000",
    "IMAGE_BODY_LIMIT_BYTES": "150000",
    "FRONT_SOURCE_LIMIT": "20",
}
"""Settings under which everything happens within seconds, and the poll never helps."""


@pytest.fixture(scope="session")
def valkey(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    home = tmp_path_factory.mktemp("valkey")
    home.chmod(0o711)
    service = RunningService(Valkey(home / "redis", free_port(), "throw-away"), home)
    service.start()
    yield service
    service.stop()


@pytest.fixture(scope="session")
def native_server() -> Iterator[ScriptedNative]:
    with ScriptedNative() as native:
        yield native


@pytest.fixture
def native(native_server: ScriptedNative) -> ScriptedNative:
    native_server.reset()
    return native_server


@pytest.fixture(scope="session")
def front(
    native_server: ScriptedNative, valkey: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontProcess]:
    folder: Path = tmp_path_factory.mktemp("front")
    native_server.reset()
    with running_front(folder, native_server.url, valkey.service.url, **QUICK) as process:
        wait_for_redis(process)
        yield process


@pytest.fixture(scope="session")
def live_front(
    native_server: ScriptedNative, valkey: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[FrontProcess]:
    """A front that passes every post on as it comes, and that waits longer."""
    native_server.reset()
    settings = {**QUICK, "STREAM_PACING": "false", "DEFAULT_DEADLINE_SECONDS": "30", "AVAILABILITY_GRACE_SECONDS": "30"}
    folder = tmp_path_factory.mktemp("live-front")
    with running_front(folder, native_server.url, valkey.service.url, **settings) as process:
        wait_for_redis(process)
        yield process


@pytest.fixture
async def client() -> AsyncIterator[aiohttp.ClientSession]:
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        yield session


class Signals:
    """What the horde's task processes publish."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url, decode_responses=True)

    def chat(self, request_id: str, event: ChatEvent = ChatEvent.DONE) -> None:
        """Something happened to a request."""
        self._redis.publish(chat_channel(request_id), chat_event(event))

    def queue(self, requirements: dict[str, object], class_id: int = 1) -> None:
        """A request of these requirements entered the queue."""
        self._redis.publish(QUEUE_CHANNEL, QueueSignal(class_id, requirements).encode())

    def post(self, request_id: str, entry: ProgressEntry, *, silently: bool = False) -> str:
        """A worker posted progress; the entry's place in the stream."""
        fields: dict[Any, Any] = dict(entry.encode())
        place = str(self._redis.xadd(progress_key(request_id), fields))
        if not silently:
            self.chat(request_id, ChatEvent.PROGRESS)
        return place

    def text(self, request_id: str, seq: int, delta: str, **more: Any) -> str:
        """A worker posted content."""
        given = {"generation_id": "g1", "seq": seq, "delta": delta, **more}
        silently = bool(given.pop("silently", False))
        return self.post(request_id, ProgressEntry(**given), silently=silently)

    def erase(self, request_id: str) -> None:
        """Nothing was posted for this request."""
        self._redis.delete(progress_key(request_id))

    def forget_everything(self) -> None:
        """Redis loses what it holds, and every connection with it."""
        self._redis.flushall()
        self.cut_others()

    def cut_others(self) -> None:
        """Redis drops every other connection."""
        for kind in ("normal", "pubsub"):
            self._redis.client_kill_filter(_type=kind, skipme=True)

    def connections(self) -> int:
        """Connections of others."""
        return len(self._redis.client_list()) - 1

    def channels(self) -> list[str]:
        """Channels that somebody listens to."""
        return [str(name) for name in self._redis.pubsub_channels("*")]

    def subscribers(self) -> int:
        """Connections that wait for signals."""
        return sum(1 for one in self._redis.client_list() if int(one["sub"]) > 0)

    def close(self) -> None:
        """Close the connection."""
        self._redis.close()


@pytest.fixture
def signals(valkey: RunningService) -> Iterator[Signals]:
    signals = Signals(valkey.service.url)
    yield signals
    signals.close()
