"""A process of the native API says that it is there and hears its workers, so that its own silence is never theirs.

Without the first an outage would be blamed on workers (native-api N4), without the second a
worker would be taken for dead that could not be heard (details D15).
"""

from threading import Event, Thread

from app.services.aborts import BEAT_SECONDS, say_alive
from app.services.runtime import Runtime

NOTES_IN_A_SILENCE = 6
"""Notes that fit into the silence after which a worker is taken for dead."""


def say_alive_for_life(runtime: Runtime) -> None:
    """Say both from a thread of its own for as long as this process lives."""
    period = min(BEAT_SECONDS, runtime.settings.heartbeat_seconds / NOTES_IN_A_SILENCE)
    never = Event()

    def beat() -> None:
        while True:
            say_alive(runtime)
            runtime.leases.note_listening()
            never.wait(period)

    Thread(target=beat, name="heartbeat", daemon=True).start()
