"""What a service works with: settings, the database, Redis and the way to Celery."""

from dataclasses import dataclass

from celery import Celery

from app.adapters.database import Database
from app.adapters.leases import LeaseStore
from app.adapters.object_store import REQUEST_SECONDS, TASK_SECONDS, ObjectStore
from app.adapters.redis_bus import RedisBus
from app.adapters.task_sender import TaskSender
from app.services.store_gate import StoreGate
from config.settings import Settings


@dataclass(frozen=True, slots=True)
class Runtime:
    """The outside things of one process."""

    settings: Settings
    database: Database
    bus: RedisBus
    leases: LeaseStore
    sender: TaskSender
    store: ObjectStore
    gate: StoreGate


def build_runtime(
    settings: Settings, celery: Celery, *, pool_size: int, application: str, planned_once: bool = False
) -> Runtime:
    """Choose the real things, once a process."""
    return Runtime(
        settings=settings,
        database=Database(settings, pool_size=pool_size, application=application, planned_once=planned_once),
        bus=RedisBus(settings),
        leases=LeaseStore(settings),
        sender=TaskSender(celery),
        store=ObjectStore(settings, read_seconds=REQUEST_SECONDS if application == "web" else TASK_SECONDS),
        gate=StoreGate(settings.native_threads),
    )
