"""Makes an account for whoever asks (wire reference 2.9)."""

from dataclasses import dataclass

import structlog

from app.domain.errors import BadRequest
from app.services.accounts import alias_of, create_key, create_user
from app.services.runtime import Runtime

SHORTEST_NAME, LONGEST_NAME = 3, 30

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Registered:
    """A new account with its key, which nobody can read again."""

    alias: str
    api_key: str


class Register:
    """The use case of the register page."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database

    def __call__(self, username: str) -> Registered:
        """Make an account with one key. Raises BadRequest when the name cannot be used."""
        name = " ".join(username.split())
        if not SHORTEST_NAME <= len(name) <= LONGEST_NAME or not name.isprintable() or "#" in name:
            raise BadRequest(
                f"Choose a name of {SHORTEST_NAME} to {LONGEST_NAME} letters, digits or signs, without #.",
                param="username",
            )
        with self._database.transaction() as transaction:
            user_id = create_user(transaction, name)
            _, key = create_key(transaction, user_id, "registered")
        log.info("account.registered", user_id=user_id)
        return Registered(alias_of(name, user_id), key)
