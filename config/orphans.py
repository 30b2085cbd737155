"""Keeps a server's child from outliving a parent that was killed."""

import os
import select
import signal
from threading import Thread


def end_with_parent() -> None:
    """End this process by SIGTERM as soon as its parent is gone, however that died.

    Waits on the parent's pid file descriptor in a thread of its own (Linux).
    """
    parent = os.pidfd_open(os.getppid())
    Thread(target=_wait_for, args=(parent,), name="orphan watch", daemon=True).start()


def _wait_for(parent: int) -> None:
    watch = select.poll()
    watch.register(parent, select.POLLIN)
    watch.poll()
    os.kill(os.getpid(), signal.SIGTERM)
