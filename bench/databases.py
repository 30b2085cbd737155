"""A database for a bench."""

from tests.conftest import as_admin, url_of
from tests.support.databases import upgrade
from tests.support.services import LocalServices


def create_database(services: LocalServices, name: str = "horde_bench") -> str:
    """Make a database of the newest shape; its URL."""
    as_admin(services, f"CREATE DATABASE {name}")
    url = url_of(services, name)
    upgrade(url, services.redis_url)
    return url
