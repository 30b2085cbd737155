"""Structured logs: one JSON object a line, bound to the request that caused it.

Prompts, replies, keys and signed URLs are never logged; the redaction below is
the last wall, not the first.
"""

import logging
import logging.config
import sys
from collections.abc import Callable, MutableMapping
from typing import Any

import orjson
import structlog

from config.settings import MASK, FrontSettings

SECRET_FIELDS = frozenset(
    {"apikey", "api_key", "authorization", "passkey", "password", "proxy_authorization", "secret"}
)

CHATTY = ("kombu", "celery.worker.strategy", "celery.app.trace")
"""Loggers with a line for each message received and each task done, which our own events say better."""

UNHEARD = "multiprocessing"
"""The logger of Celery's parents, which tells of children that died and hands nothing on to the root."""

INDISCREET = ("botocore", "boto3", "urllib3", "PIL")
"""Loggers that write whole requests at DEBUG: signed URLs, signatures and image bytes (images I8)."""


def redact(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Mask every field whose name says that it is a secret."""
    for name in event:
        if name.lower() in SECRET_FIELDS:
            event[name] = MASK
    return event


def _names(process: str) -> Callable[[Any, str, MutableMapping[str, Any]], MutableMapping[str, Any]]:
    def add_process(_logger: Any, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
        event["process"] = process
        return event

    return add_process


def _render(value: Any, **_: Any) -> bytes:
    return orjson.dumps(value, default=str)


def _render_text(value: Any, **_: Any) -> str:
    return _render(value).decode()


def configure_logging(settings: FrontSettings, process: str) -> None:
    """Send the logs of this process, the libraries' among them, to stderr as JSON lines.

    Our own events are written straight to it: by the standard library's way they cost several times as much.
    """
    shared: list[Any] = [
        structlog.contextvars.merge_contextvars,
        _names(process),
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
        redact,
    ]
    structlog.configure(
        processors=[*shared, structlog.processors.JSONRenderer(serializer=_render)],
        logger_factory=structlog.BytesLoggerFactory(sys.stderr.buffer),
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(settings.horde_log_level)),
        cache_logger_on_first_use=True,
    )
    logging.captureWarnings(True)
    logging.config.dictConfig(
        {
            "version": 1,
            "disable_existing_loggers": False,
            "formatters": {
                "json": {
                    "()": structlog.stdlib.ProcessorFormatter,
                    "foreign_pre_chain": shared,
                    "processors": [
                        structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                        structlog.processors.JSONRenderer(serializer=_render_text),
                    ],
                }
            },
            "handlers": {"stderr": {"class": "logging.StreamHandler", "formatter": "json"}},
            "root": {"handlers": ["stderr"], "level": settings.horde_log_level},
            "loggers": {
                **{name: {"level": "WARNING"} for name in (*CHATTY, *INDISCREET)},
                UNHEARD: {"handlers": ["stderr"], "level": "WARNING", "propagate": False},
            },
        }
    )
