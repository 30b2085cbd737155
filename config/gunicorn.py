"""Gunicorn's settings for the `web` process: request threads, one or more processes behind one port."""

import os

from prometheus_client import multiprocess

from config.settings import get_settings

_settings = get_settings()

bind = f"{_settings.horde_bind_host}:{_settings.horde_native_port}"
worker_class = "gthread"
workers = _settings.native_processes
threads = _settings.native_threads
# The app is loaded after the fork, so no connection is ever shared with the parent.
preload_app = False
# Longer than most proxies keep an idle connection, so that they close first.
keepalive = 75
graceful_timeout = 25
timeout = 60
accesslog = None
# Nobody manages this process by hand: the platform signals it.
control_socket_disable = True


def child_exit(_server: object, worker: object) -> None:
    """Forget the figures of a process that has gone."""
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        multiprocess.mark_process_dead(worker.pid)  # type: ignore[attr-defined, no-untyped-call]
