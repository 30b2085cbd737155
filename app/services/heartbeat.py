"""A process of the native API says that it is there, so that an outage is not blamed on workers (native-api N4)."""

from threading import Event, Thread

from app.services.aborts import BEAT_SECONDS, say_alive
from app.services.runtime import Runtime


def say_alive_for_life(runtime: Runtime) -> None:
    """Beat from a thread of its own for as long as this process lives."""
    Thread(target=_beat, args=(runtime,), name="heartbeat", daemon=True).start()


def _beat(runtime: Runtime) -> None:
    pause = Event()
    while True:
        say_alive(runtime)
        pause.wait(BEAT_SECONDS)
