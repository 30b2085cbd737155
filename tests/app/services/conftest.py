"""Use cases over a real database and a real Valkey, with the doors a flow would come through."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import pytest
from celery import Celery
from redis import Redis
from sqlalchemy import text

from app.adapters.redis_bus import RedisBus
from app.domain.capabilities import parse_declaration
from app.domain.contract import Face, parse_chat_request
from app.domain.pricing import KUDOS
from app.domain.verification import Reply, parse_reply
from app.services import accounts
from app.services.cancel_request import CancelRequest
from app.services.escrow import escrow_of
from app.services.invariants import check
from app.services.kudos import balance, grant
from app.services.online import OnlineWorkers
from app.services.pop import Job, Pop
from app.services.queue_info import QueueInfo
from app.services.release_job import ReleaseJob
from app.services.request_status import ReadStatus, Statuses
from app.services.requirement_classes import RequirementClasses
from app.services.runtime import Runtime, build_runtime
from app.services.submit_reply import SubmitReply
from app.services.submit_request import Accepted, Submission, SubmitRequest
from app.services.submit_text import SubmitText
from app.services.submit_text_reply import SubmitTextReply
from config.settings import Settings

CHAT = {"model": "m", "messages": [{"role": "user", "content": "Say hello."}]}
DECLARATION = {
    "name": "box",
    "models": ["m"],
    "model_id": "m",
    "chat_jobs": True,
    "prompt_jobs": False,
    "chat_features": ["prompt_overflow_refused", "tools", "tool_choice_auto_faithful"],
    "max_length": 1024,
    "max_context_length": 8192,
    "threads": 2,
}
HELLO = {"message": {"content": "Hello there, friend."}, "finish_reason": "stop"}


@pytest.fixture
def settings(quiet_redis: str, database_url: str) -> Settings:
    """Settings over this test's own database; a submit does not wait for a verdict that no process gives."""
    return Settings(
        _env_file=None,
        database_url=database_url,
        redis_url=quiet_redis,
        verdict_wait_seconds=0,
        rescue_after_seconds=1,
        workers_untrusted=1000,
    )


@pytest.fixture
def redis(quiet_redis: str) -> Iterator[Redis]:
    """The transaction's Valkey, empty."""
    client = Redis.from_url(quiet_redis)
    client.flushdb()
    yield client
    client.close()


@pytest.fixture
def runtime(settings: Settings, redis: Redis) -> Iterator[Runtime]:
    """One process's outside things."""
    celery = Celery("test", broker=settings.redis_url, set_as_current=False)
    made = build_runtime(settings, celery, pool_size=4, application="test", planned_once=True)
    yield made
    made.database.close()
    made.bus.close()
    made.leases.close()
    celery.close()


@dataclass
class World:
    """A horde without processes: a requester, an owner with a worker, and the use cases."""

    runtime: Runtime
    requester_id: int
    requester_key: str
    owner_id: int
    owner_key: str

    def __post_init__(self) -> None:
        online = OnlineWorkers(300)
        classes = RequirementClasses()
        queue_info = QueueInfo(self.runtime, online, classes)
        statuses = Statuses(online, queue_info)
        self.online = online
        self.queue_info = queue_info
        self.submit = SubmitRequest(self.runtime, online, classes, statuses)
        self.submit_text = SubmitText(self.runtime, online, classes)
        self.pops = Pop(self.runtime, online, classes, queue_info)
        self.replies = SubmitReply(self.runtime)
        self.text_replies = SubmitTextReply(self.runtime)
        self.read = ReadStatus(self.runtime, statuses)
        self.cancel = CancelRequest(self.runtime, statuses)
        self.release = ReleaseJob(self.runtime)

    @property
    def bus(self) -> RedisBus:
        """Redis, as this process sees it."""
        return self.runtime.bus

    def pop(self, pop_key: str | None = None, **changes: Any) -> Job:
        """Let the owner's worker pop."""
        declaration, _ = parse_declaration(DECLARATION | changes)
        return self.pops(self.owner_key, declaration, pop_key)

    def ask(self, operation_key: str | None = None, **changes: Any) -> Accepted:
        """Submit a chat request as the requester."""
        chat = parse_chat_request(CHAT | changes, Face.NATIVE)
        return self.submit(Submission(api_key=self.requester_key, chat=chat, operation_key=operation_key))

    def leased(self, **changes: Any) -> tuple[UUID, UUID]:
        """Submit a request and pop it: its id and its generation's."""
        accepted = self.ask(**changes)
        job = self.pop()
        assert job.id is not None
        return accepted.id, job.id

    def deliver(self, generation_id: UUID, body: Mapping[str, object] | None = None) -> None:
        """Submit a reply for a generation."""
        self.replies.deliver(self.owner_key, generation_id, self.reply(body))

    @staticmethod
    def reply(body: Mapping[str, object] | None = None) -> Reply:
        """A worker's reply."""
        return parse_reply(body or HELLO)

    def status(self, request_id: UUID) -> dict[str, Any]:
        """The status that the requester reads."""
        return self.read(request_id, api_key=self.requester_key, trusted_front=False)

    def state_of(self, table: str, row_id: UUID) -> str:
        """The state of a row."""
        with self.runtime.database.transaction() as transaction:
            query = text(f"SELECT state FROM {table} WHERE id = :id")  # noqa: S608 - a table of ours
            return str(transaction.execute(query, {"id": row_id}).scalar_one())

    def kudos(self, user_id: int) -> tuple[int, int]:
        """What an account may spend, and what waits in escrow, in millikudos."""
        with self.runtime.database.transaction() as transaction:
            return balance(transaction, user_id), escrow_of(transaction, user_id)

    def enrich(self) -> None:
        """Let the requester have as many requests waiting, and as much held for them, as a test makes."""
        with self.runtime.database.transaction() as transaction:
            grant(transaction, self.requester_id, 1_000_000 * KUDOS)
        self.execute("UPDATE users SET concurrency = 1000000 WHERE id = :id", id=self.requester_id)

    def account(self, name: str, *, grants: int = 0) -> tuple[int, str]:
        """Make another account with a key: its id and the key."""
        with self.runtime.database.transaction() as transaction:
            user_id = accounts.create_user(transaction, name)
            if grants:
                grant(transaction, user_id, grants)
            return user_id, accounts.create_key(transaction, user_id, "test")[1]

    def execute(self, statement: str, **values: object) -> list[tuple[object, ...]]:
        """Run a statement and return its rows, if it has any."""
        with self.runtime.database.transaction() as transaction:
            result = transaction.execute(text(statement), values)
            return [tuple(row) for row in result]

    def require_sound(self, *, at_rest: bool = False) -> None:
        """Fail with every invariant that does not hold."""
        with self.runtime.database.transaction() as transaction:
            assert check(transaction, at_rest=at_rest) == []


@pytest.fixture
def world(runtime: Runtime) -> Iterator[World]:
    """A requester, an owner and a worker that is online; every invariant holds at the end."""
    with runtime.database.transaction() as transaction:
        requester = accounts.create_user(transaction, "ann")
        owner = accounts.create_user(transaction, "bob")
        grant(transaction, requester, 1000 * KUDOS)
        _, requester_key = accounts.create_key(transaction, requester, "test")
        _, owner_key = accounts.create_key(transaction, owner, "test")
    made = World(runtime, requester, requester_key, owner, owner_key)
    assert made.pop().id is None
    yield made
    made.require_sound()


Listen = Callable[[str], Callable[[], bytes | None]]


@pytest.fixture
def some_id() -> UUID:
    """An id that nothing has."""
    return uuid4()


@pytest.fixture
def listen(redis: Redis) -> Iterator[Listen]:
    """Subscribe to a channel; the function that comes back waits for its next message."""
    listener = redis.pubsub(ignore_subscribe_messages=True)  # type: ignore[no-untyped-call]

    def subscribe(channel: str) -> Callable[[], bytes | None]:
        listener.subscribe(channel)
        listener.get_message(timeout=1)

        def next_message() -> bytes | None:
            message = listener.get_message(timeout=2)
            return None if message is None else bytes(message["data"])

        return next_message

    yield subscribe
    listener.close()
