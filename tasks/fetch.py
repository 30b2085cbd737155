"""Tasks of the `fetch` queue: images of other people's servers, many at once, for all they do is wait."""

import threading
from functools import lru_cache
from uuid import UUID

from app.domain.task_names import TaskName
from app.services.fetch_images import FetchImages
from tasks.celery_app import celery, runtime

_making = threading.Lock()


@lru_cache(maxsize=1)
def _made() -> FetchImages:
    return FetchImages(runtime())


def _fetch_images() -> FetchImages:
    """Return this process's use case: one for all threads, since it counts what they do."""
    with _making:
        return _made()


@celery.task(name=TaskName.FETCH_IMAGES.value, max_retries=2, default_retry_delay=1)
def fetch(request_id: str) -> None:
    """Fetch the remote images of one request."""
    _fetch_images()(UUID(request_id))
