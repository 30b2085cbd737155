"""The Celery app: settings from celeryconfig, one runtime a process, opened after the fork."""

from celery import Celery
from celery.signals import beat_init, celeryd_init, setup_logging, worker_init, worker_process_init

from app.domain.task_names import Queue
from app.services.runtime import Runtime, build_runtime
from config.logging import configure_logging
from config.settings import get_settings
from tasks.health import serve_health
from tasks.inherited import leave_inherited_connections
from tasks.once import Once
from tasks.schedule import beat_schedule

POOL_SIZE = 2

MODULES = ("verdict", "schema", "settlement", "upkeep", "fetch", "media", "observing")

celery = Celery("horde", include=[f"tasks.{module}" for module in MODULES])
celery.config_from_object("celeryconfig")
celery.conf.beat_schedule = beat_schedule(get_settings())


runtime: Once[Runtime] = Once(lambda: build_runtime(get_settings(), celery, pool_size=POOL_SIZE, application="tasks"))
"""This process's runtime."""


# Celery sets logging up late: its warnings about privileges come before.
@celeryd_init.connect
@setup_logging.connect
def _configure_logging(**_: object) -> None:
    configure_logging(get_settings(), "celery")


@worker_process_init.connect
def _leave_what_is_the_parents(**_: object) -> None:
    leave_inherited_connections()
    if runtime.made is not None:
        runtime.made.database.reopen_after_fork()
    runtime.forget()


@worker_init.connect
def _serve_workers_health(**_: object) -> None:
    _serve_health(keeps_objects=bool({Queue.FETCH.value, Queue.MEDIA.value} & set(celery.amqp.queues.consume_from)))


@beat_init.connect
def _serve_beats_health(**_: object) -> None:
    _serve_health(keeps_objects=False)


def _serve_health(*, keeps_objects: bool) -> None:
    port = get_settings().horde_metrics_port
    if port is not None:
        serve_health(runtime, port, keeps_objects=keeps_objects)
