"""Which outside services answer right now (operations O4)."""

from redis.exceptions import RedisError
from sqlalchemy.exc import SQLAlchemyError

from app.services.runtime import Runtime


def readiness(runtime: Runtime) -> dict[str, bool]:
    """Return for each service that a request needs whether it answers."""
    return {"database": _database(runtime), "redis": _redis(runtime)}


def _database(runtime: Runtime) -> bool:
    try:
        runtime.database.ping()
    except SQLAlchemyError:
        return False
    return True


def _redis(runtime: Runtime) -> bool:
    try:
        runtime.bus.ping()
    except RedisError:
        return False
    return True
