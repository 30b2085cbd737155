"""Tasks of the `media` queue: images, offloaded messages, and what both leave in the object store."""

from uuid import UUID

from app.adapters.image_decoder import ImageDecoder
from app.domain.task_names import TaskName
from app.services import delete_objects as deleting
from app.services.offload_messages import offload_messages
from app.services.prepare_images import PrepareImages
from config.settings import get_settings
from tasks.celery_app import celery, runtime
from tasks.once import Once

_prepare = Once(lambda: PrepareImages(runtime(), ImageDecoder(get_settings())))
"""This process's use case: its decoder takes the images of all threads in turn."""


@celery.task(name=TaskName.PREPARE_IMAGES.value, max_retries=2, default_retry_delay=1)
def prepare(request_id: str) -> None:
    """Prepare the images of one request and let it into the queue."""
    _prepare()(UUID(request_id))


@celery.task(name=TaskName.OFFLOAD_MESSAGES.value, max_retries=2, default_retry_delay=1)
def offload(request_id: str) -> None:
    """Store the messages of one request as an object."""
    offload_messages(runtime(), UUID(request_id))


@celery.task(name=TaskName.DELETE_OBJECTS.value, max_retries=0)
def delete_objects() -> None:
    """Delete the objects of ended requests."""
    deleting.delete_objects(runtime())


@celery.task(name=TaskName.DELETE_ORPHANS.value, max_retries=0)
def delete_orphans() -> None:
    """Delete old objects that belong to no request."""
    deleting.delete_orphans(runtime())
