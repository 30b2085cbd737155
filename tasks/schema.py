"""Tasks of the `schema` queue: verification that may take long, under limits that end it (details D13)."""

from uuid import UUID

import structlog
from celery.exceptions import SoftTimeLimitExceeded

from app.domain.task_names import TaskName
from app.services.verify_generation import verify_generation
from config.settings import get_settings
from tasks.celery_app import celery, runtime

HARD_MARGIN_SECONDS = 2

log = structlog.get_logger(__name__)

_limit = get_settings().schema_limit_seconds


@celery.task(
    name=TaskName.VERIFY_BY_SCHEMA.value,
    max_retries=2,
    default_retry_delay=1,
    soft_time_limit=_limit,
    time_limit=_limit + HARD_MARGIN_SECONDS,
)
def verify(generation_id: str) -> None:
    """Verify one submitted generation that is large, or judged by its client's schema."""
    try:
        verify_generation(runtime(), UUID(generation_id))
    except SoftTimeLimitExceeded:
        # The attempt is counted in the row; the sweep tries again, or ends the request.
        log.warning("verification.too_slow", generation_id=generation_id, limit_seconds=_limit)
