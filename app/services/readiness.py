"""Which outside services answer right now (operations O4)."""

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.adapters.object_store import ObjectMissing, StoreAway
from app.services.runtime import Runtime


def readiness(runtime: Runtime, *, keeps_objects: bool = False) -> dict[str, bool]:
    """Return for each service that this process cannot work without whether it answers.

    `keeps_objects` adds the object store: of the web's work, requests with images alone need it.
    """
    checks = {"database": _database(runtime), "redis": _redis(runtime)}
    return checks | ({"storage": _storage(runtime)} if keeps_objects and runtime.store.is_configured else {})


def _database(runtime: Runtime) -> bool:
    try:
        runtime.database.ping()
    except SQLAlchemyError:
        return False
    return True


def _storage(runtime: Runtime) -> bool:
    try:
        runtime.store.ping()
    except (StoreAway, ObjectMissing):
        return False
    return True


def _redis(runtime: Runtime) -> bool:
    try:
        runtime.bus.ping()
    except RedisError:
        return False
    return True
