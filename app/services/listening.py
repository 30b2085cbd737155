"""Says that a web process can hear its workers, so that its own silence is never taken for theirs (details D15)."""

from threading import Event, Thread

from app.services.runtime import Runtime

NOTES_IN_A_SILENCE = 6
"""Notes that fit into the silence after which a worker is taken for dead."""


def keep_listening(runtime: Runtime) -> None:
    """Note it now and then for as long as this process lives."""
    period = runtime.settings.heartbeat_seconds / NOTES_IN_A_SILENCE
    never = Event()

    def note() -> None:
        while True:
            runtime.leases.note_listening()
            never.wait(period)

    Thread(target=note, name="listening", daemon=True).start()
