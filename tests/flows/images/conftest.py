"""A horde for images: its store behind a proxy that can fail, two private hosts that it may fetch from."""

from collections.abc import Iterator

import pytest

from tests.conftest import as_admin, url_of
from tests.flows.images.seeing import Seeing
from tests.support.file_server import FileServer
from tests.support.horde import PROCESSES, HordeProcesses
from tests.support.services import LocalServices
from tests.support.tcp_proxy import TcpProxy

DATABASE = "horde_images"


@pytest.fixture(scope="package")
def store(services: LocalServices) -> Iterator[TcpProxy]:
    """The way to the object store."""
    with TcpProxy(services.s3_endpoint_url) as proxy:
        yield proxy


@pytest.fixture(scope="package")
def files() -> Iterator[FileServer]:
    """A host that images may be fetched from although it is private."""
    with FileServer() as server:
        yield server


@pytest.fixture(scope="package")
def others() -> Iterator[FileServer]:
    """Another such host."""
    with FileServer() as server:
        yield server


@pytest.fixture(scope="package")
def image_redis(services: LocalServices) -> Iterator[str]:
    """URL of this horde's own Valkey, since signals reach all numbered databases of one."""
    with services.own_redis("image-redis") as redis:
        yield redis.service.url


@pytest.fixture(scope="package")
def running(
    services: LocalServices,
    image_redis: str,
    template_database: str,
    store: TcpProxy,
    files: FileServer,
    others: FileServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[HordeProcesses]:
    """The processes, with the times of the specification made short."""
    as_admin(services, f"CREATE DATABASE {DATABASE} TEMPLATE {template_database}")
    settings = {
        "REDIS_URL": image_redis,
        "S3_ENDPOINT_URL": store.url,
        "S3_PUBLIC_ENDPOINT_URL": services.s3_endpoint_url,
        "IMAGE_FETCH_ALLOWED_HOSTS": f"{files.host},{others.host}",
        # What is never logged is looked for where most is logged.
        "HORDE_LOG_LEVEL": "DEBUG",
        "IMAGE_FETCH_SECONDS": "4",
        "IMAGE_DECODER_SECONDS": "5",
        "STORAGE_PATIENCE_SECONDS": "60",
        "MEDIA_ORPHAN_SECONDS": "4",
        "OFFLOAD_BYTES": "20000",
        "GENERATION_TTL_FLOOR_SECONDS": "60",
    }
    horde = HordeProcesses(services, url_of(services, DATABASE), tmp_path_factory.mktemp("images"), settings)
    try:
        horde.start("fetch")
        horde.start_all()
        yield horde
    finally:
        horde.close()


@pytest.fixture
def horde(running: HordeProcesses) -> Iterator[HordeProcesses]:
    """The horde, sound once the flow has ended."""
    yield running
    for name in (*PROCESSES, "fetch"):
        if not running.is_alive(name):
            running.start(name)
    running.require_sound()


@pytest.fixture
def seeing(horde: HordeProcesses) -> Seeing:
    """A requester and a worker of a model of this test's own."""
    return Seeing(horde)
