"""The WSGI app that `app.server` serves, made anew in each of its processes."""

from celery import Celery

from app.factory import create_app
from app.services.heartbeat import say_alive_for_life
from app.services.runtime import build_runtime
from config.logging import configure_logging
from config.orphans import end_with_parent
from config.settings import get_settings

settings = get_settings()
configure_logging(settings, "web")
end_with_parent()
celery = Celery("horde")
celery.config_from_object("celeryconfig")
runtime = build_runtime(settings, celery, pool_size=settings.web_pool_size, application="web", planned_once=True)
app = create_app(runtime)
say_alive_for_life(runtime)
