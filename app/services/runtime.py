"""What a service works with: settings, the database, Redis and the way to Celery."""

from dataclasses import dataclass

from celery import Celery

from app.adapters.database import Database
from app.adapters.leases import LeaseStore
from app.adapters.redis_bus import RedisBus
from app.adapters.task_sender import TaskSender
from config.settings import Settings


@dataclass(frozen=True, slots=True)
class Runtime:
    """The outside things of one process."""

    settings: Settings
    database: Database
    bus: RedisBus
    leases: LeaseStore
    sender: TaskSender


def build_runtime(settings: Settings, celery: Celery, *, pool_size: int, application: str) -> Runtime:
    """Choose the real things, once a process."""
    return Runtime(
        settings=settings,
        database=Database(settings, pool_size=pool_size, application=application),
        bus=RedisBus(settings),
        leases=LeaseStore(settings),
        sender=TaskSender(celery),
    )
