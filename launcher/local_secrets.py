"""The passwords and keys of one horde: made at its first start, kept in its home."""

import secrets
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import Self

import orjson

from launcher.errors import LauncherError
from launcher.private_files import write_private_json

KEY_BYTES = 16
"""22 URL-safe characters (native-api N6)."""


def _new_key() -> str:
    return secrets.token_urlsafe(KEY_BYTES)


@dataclass(frozen=True, slots=True)
class LocalSecrets:
    """Everything secret that the launcher makes."""

    postgres_password: str = field(default_factory=_new_key, repr=False)
    redis_password: str = field(default_factory=_new_key, repr=False)
    s3_access_key: str = field(default_factory=_new_key, repr=False)
    s3_secret_key: str = field(default_factory=_new_key, repr=False)
    flower_password: str = field(default_factory=_new_key, repr=False)
    service_passkey: str = field(default_factory=_new_key, repr=False)
    admin_key: str = field(default_factory=_new_key, repr=False)
    demo_key: str = field(default_factory=_new_key, repr=False)
    worker_key: str = field(default_factory=_new_key, repr=False)

    @classmethod
    def load_or_create(cls, path: Path) -> Self:
        """Read the secrets, and make those that are not there yet.

        Raises LauncherError when the file is not ours.
        """
        kept: dict[str, str] = {}
        if path.exists():
            try:
                content = orjson.loads(path.read_bytes())
                kept = {entry.name: str(content[entry.name]) for entry in fields(cls) if entry.name in content}
            except (orjson.JSONDecodeError, TypeError) as error:
                raise LauncherError(
                    f"{path} cannot be read ({error}): restore it, or delete the whole home."
                ) from error
        loaded = cls(**kept)
        if asdict(loaded) != kept:
            write_private_json(path, asdict(loaded))
        return loaded
