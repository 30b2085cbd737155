"""What the object store's refusals come to, on a real S3 behind a proxy that can say it is full."""

from collections.abc import Iterator
from uuid import uuid4

import pytest

from app.adapters.object_store import STORE_CALLS, ObjectStore, StoreAway
from config.settings import Settings
from tests.support.services import LocalServices
from tests.support.tcp_proxy import TcpProxy


@pytest.fixture
def proxy(services: LocalServices) -> Iterator[TcpProxy]:
    with TcpProxy(services.s3_endpoint_url) as between:
        yield between


@pytest.fixture
def store(services: LocalServices, proxy: TcpProxy) -> ObjectStore:
    return ObjectStore(
        Settings(
            _env_file=None,
            database_url=services.database_url,
            redis_url=services.redis_url,
            s3_endpoint_url=proxy.url,
            s3_bucket=services.s3_bucket,
            aws_access_key_id=services.s3_access_key,
            aws_secret_access_key=services.s3_secret_key,
        )
    )


def counted(outcome: str) -> float:
    """Uploads that came to this."""
    return float(STORE_CALLS.labels("put", outcome)._value.get())


@pytest.mark.parametrize("size", [100, 5_000_000])
def test_a_store_without_room_is_counted_apart_and_taken_up_again_once_there_is_room(
    store: ObjectStore, proxy: TcpProxy, size: int
) -> None:
    key, full, failed = f"full/{uuid4()}", counted("full"), counted("failed")
    store.put(key, b"before", "text/plain")
    with proxy.full(), pytest.raises(StoreAway):
        store.put(key, b"x" * size, "text/plain")
    assert (counted("full"), counted("failed")) == (full + 1, failed)
    assert store.read(key) == b"before"
    store.put(key, b"after", "text/plain")
    assert store.read(key) == b"after"


def test_a_store_that_is_away_is_not_taken_for_full(store: ObjectStore, proxy: TcpProxy) -> None:
    full, failed = counted("full"), counted("failed")
    with proxy.down(), pytest.raises(StoreAway):
        store.put(f"away/{uuid4()}", b"x", "text/plain")
    assert (counted("full"), counted("failed")) == (full, failed + 1)
