"""The WSGI entry point: `gunicorn --config config/gunicorn.py app.wsgi:app`."""

from celery import Celery

from app.factory import create_app
from app.services.runtime import build_runtime
from config.logging import configure_logging
from config.settings import get_settings

settings = get_settings()
configure_logging(settings, "web")
celery = Celery("horde")
celery.config_from_object("celeryconfig")
app = create_app(build_runtime(settings, celery, pool_size=settings.native_threads, application="web"))
