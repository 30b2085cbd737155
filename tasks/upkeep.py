"""Tasks of the `upkeep` queue: rescue, retention, and the hot queue's vacuum."""

from app.domain.task_names import TaskName
from app.services import history, statistics
from app.services import refresh_queue as refreshing
from app.services import sweep as sweeping
from app.services.suspicions import suspect_speeds
from app.services.worker_messages import forget_expired
from tasks.celery_app import celery, runtime


@celery.task(name=TaskName.SWEEP.value, max_retries=0)
def sweep() -> None:
    """Rescue rows that wait longer than they should."""
    sweeping.sweep(runtime())


@celery.task(name=TaskName.ERASE_BODIES.value, max_retries=0)
def erase_bodies() -> None:
    """Erase the bodies of requests that ended long enough ago."""
    sweeping.erase_bodies(runtime())


@celery.task(name=TaskName.VACUUM_QUEUE.value, max_retries=0)
def vacuum_queue() -> None:
    """Vacuum the hot queue."""
    sweeping.vacuum_queue(runtime())


@celery.task(name=TaskName.REFRESH_QUEUE.value, max_retries=0)
def refresh_queue() -> None:
    """Count the queue by class and rank, for positions, waits and skipped jobs."""
    refreshing.refresh_queue(runtime())


@celery.task(name=TaskName.MEASURE_SPEEDS.value, max_retries=0)
def measure_speeds() -> None:
    """Measure how fast the online workers are, by model, and note whose speed nobody can believe."""
    refreshing.measure_speeds(runtime())
    suspect_speeds(runtime())


@celery.task(name=TaskName.NOTE_MINUTE.value, max_retries=0)
def note_minute() -> None:
    """Look at the horde for the status page's charts; the last look of a minute stays."""
    history.note_minute(runtime())


@celery.task(name=TaskName.COUNT_GENERATIONS.value, max_retries=0)
def count_generations() -> None:
    """Count what was delivered since the last time, by model, period and worker."""
    statistics.count_generations(runtime())


@celery.task(name=TaskName.FORGET_MESSAGES.value, max_retries=0)
def forget_messages() -> None:
    """Delete messages to workers that have expired."""
    forget_expired(runtime())
