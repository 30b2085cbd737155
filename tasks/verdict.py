"""Tasks of the `verdict` queue: verification, and the signals that follow."""

from uuid import UUID

from app.domain.task_names import TaskName
from app.services.sweep import publish_ended
from app.services.verify_generation import verify_generation
from tasks.celery_app import celery, runtime


@celery.task(name=TaskName.VERIFY_GENERATION.value, max_retries=2, default_retry_delay=1)
def verify(generation_id: str) -> None:
    """Verify one submitted generation."""
    verify_generation(runtime(), UUID(generation_id))


@celery.task(name=TaskName.PUBLISH_ENDED.value, max_retries=0)
def publish() -> None:
    """Ring again for requests that ended just now."""
    publish_ended(runtime())
