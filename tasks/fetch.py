"""Tasks of the `fetch` queue: images of other people's servers, many at once, for all they do is wait."""

from uuid import UUID

from app.domain.task_names import TaskName
from app.services.fetch_images import FetchImages
from tasks.celery_app import celery, runtime
from tasks.once import Once

_fetch_images = Once(lambda: FetchImages(runtime()))
"""This process's use case: one for all threads, since it counts what they do."""


@celery.task(name=TaskName.FETCH_IMAGES.value, max_retries=2, default_retry_delay=1)
def fetch(request_id: str) -> None:
    """Fetch the remote images of one request."""
    _fetch_images()(UUID(request_id))
