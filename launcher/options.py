"""What a person asks of the launcher."""

from dataclasses import dataclass
from pathlib import Path

from launcher.errors import LauncherError

CHECKOUT = Path(__file__).resolve().parent.parent
LOCAL_MODEL = "gemma-3-270m"
"""Name of the model that comes with the local backend."""
LOCAL_SLOTS = 2
"""Requests that the local backend works on at the same time."""


@dataclass(frozen=True, slots=True)
class UpOptions:
    """How a horde is brought up."""

    detach: bool = False
    with_worker: bool = True
    backend_url: str | None = None
    """An OpenAI-compatible backend for the worker; none runs the local one."""
    backend_model: str | None = None
    procfile: Path = CHECKOUT / "Procfile"

    def __post_init__(self) -> None:
        """Refuse what does not fit together."""
        if (self.backend_url is None) != (self.backend_model is None):
            raise LauncherError("--backend and --model belong together: give both or none.")
        if self.backend_url is not None and not self.with_worker:
            raise LauncherError("--no-worker starts no worker that --backend could be for: leave one out.")

    @property
    def model(self) -> str:
        """The model that the worker serves."""
        return self.backend_model or LOCAL_MODEL

    @property
    def served_as(self) -> str:
        """The model's name on the horde, where a colon is reserved (details D1)."""
        return self.model.replace(":", "-")
