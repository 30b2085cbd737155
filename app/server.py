"""The `web` process: the native API under Granian, one or more processes of request threads behind one port."""

from granian import Granian
from granian.constants import HTTPModes, Interfaces
from granian.log import LogLevels

from config.logging import configure_logging
from config.settings import get_settings
from config.shared_figures import shared_figures

RESPAWN_SECONDS = 0.5
KILL_SECONDS = 25

OUR_LOGGING = {"formatters": {}, "handlers": {}, "loggers": {"_granian": {"propagate": True}}}
"""Granian's warnings go where ours go, as JSON lines; it would print them as they are."""


def main() -> None:
    """Serve until a signal comes; a process of ours that dies is replaced."""
    settings = get_settings()
    configure_logging(settings, "web")
    server = Granian(
        "app.wsgi:app",
        address=settings.horde_bind_host,
        port=settings.horde_native_port,
        interface=Interfaces.WSGI,
        http=HTTPModes.http1,
        websockets=False,
        workers=settings.native_processes,
        blocking_threads=settings.native_threads,
        respawn_failed_workers=True,
        respawn_interval=RESPAWN_SECONDS,
        workers_kill_timeout=KILL_SECONDS,
        log_level=LogLevels.warning,
        log_dictconfig=OUR_LOGGING,
    )
    with shared_figures(settings.native_processes):
        server.serve()


if __name__ == "__main__":
    main()
