"""The beat table, in one place. Each entry expires before its next turn, so a backlog cannot stampede."""

from app.domain.task_names import TaskName
from config.settings import Settings

FOLD_SECONDS = 3.0
ESCROW_SECONDS = 60.0
UPTIME_SECONDS = 30.0
ERASE_SECONDS = 60.0
VACUUM_SECONDS = 30.0
SPEEDS_SECONDS = 15.0
HISTORY_SECONDS = 15.0
FORGET_SECONDS = 3600.0
DELETE_SECONDS = 10.0
ORPHANS_SECONDS = 600.0


def beat_schedule(settings: Settings) -> dict[str, dict[str, object]]:
    """Return Celery's schedule for these settings."""
    periods = {
        TaskName.SWEEP: settings.sweep_seconds,
        TaskName.PUBLISH_ENDED: settings.sweep_seconds,
        TaskName.FOLD_BALANCES: FOLD_SECONDS,
        TaskName.REVIEW_ESCROW: ESCROW_SECONDS,
        TaskName.REWARD_UPTIME: UPTIME_SECONDS,
        TaskName.ERASE_BODIES: ERASE_SECONDS,
        TaskName.VACUUM_QUEUE: VACUUM_SECONDS,
        TaskName.REFRESH_QUEUE: settings.queue_refresh_seconds,
        TaskName.MEASURE_SPEEDS: SPEEDS_SECONDS,
        TaskName.NOTE_MINUTE: HISTORY_SECONDS,
        TaskName.COUNT_GENERATIONS: settings.statistics_seconds,
        TaskName.FORGET_MESSAGES: FORGET_SECONDS,
        TaskName.DELETE_OBJECTS: DELETE_SECONDS,
        TaskName.DELETE_ORPHANS: min(ORPHANS_SECONDS, settings.media_orphan_seconds),
    }
    return {
        task.value: {
            "task": task.value,
            "schedule": seconds,
            "options": {"queue": task.queue.value, "expires": seconds},
        }
        for task, seconds in periods.items()
    }
