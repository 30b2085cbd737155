"""The Celery app: settings from celeryconfig, one runtime a process, opened after the fork."""

from celery import Celery
from celery.signals import beat_init, setup_logging, worker_init, worker_process_init

from app.services.runtime import Runtime, build_runtime
from config.logging import configure_logging
from config.settings import get_settings
from tasks.health import serve_health
from tasks.schedule import beat_schedule

POOL_SIZE = 2

celery = Celery("horde", include=["tasks.verdict", "tasks.schema", "tasks.settlement", "tasks.upkeep"])
celery.config_from_object("celeryconfig")
celery.conf.beat_schedule = beat_schedule(get_settings())

_runtime: Runtime | None = None


def runtime() -> Runtime:
    """Return this process's runtime, made on first use: never before a fork."""
    global _runtime  # noqa: PLW0603 - one runtime a process is the point
    if _runtime is None:
        _runtime = build_runtime(get_settings(), celery, pool_size=POOL_SIZE, application="tasks")
    return _runtime


@setup_logging.connect
def _configure_logging(**_: object) -> None:
    configure_logging(get_settings(), "celery")


@worker_process_init.connect
def _leave_the_parents_runtime(**_: object) -> None:
    global _runtime  # noqa: PLW0603 - see above
    if _runtime is not None:
        _runtime.database.reopen_after_fork()
        _runtime = None


@worker_init.connect
@beat_init.connect
def _serve_health(**_: object) -> None:
    port = get_settings().horde_metrics_port
    if port is not None:
        serve_health(runtime, port)
