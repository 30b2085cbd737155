"""Makes an account for whoever asks (wire reference 2.9)."""

from dataclasses import dataclass

import structlog

from app.domain.errors import BadRequest, RegistrationClosed
from app.domain.modes import Mode
from app.domain.name_rules import is_profane, parse_words
from app.services.accounts import alias_of, create_key, create_user
from app.services.address_bans import AddressBans
from app.services.modes import Modes
from app.services.runtime import Runtime

SHORTEST_NAME, LONGEST_NAME = 3, 30

log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Registered:
    """A new account with its key, which nobody can read again."""

    alias: str
    api_key: str


class Register:
    """The use case of the register page."""

    def __init__(self, runtime: Runtime) -> None:
        self._database = runtime.database
        self._modes = Modes(runtime)
        self._bans = AddressBans(runtime.database)
        self._words = parse_words(runtime.settings.refused_name_words)

    def __call__(self, username: str, address: str = "") -> Registered:
        """Make an account with one key, for somebody who calls from this address.

        Raises BadRequest when the name cannot be used, AddressBanned, and RegistrationClosed in raid mode (wire
        reference 4.12).
        """
        self._bans.check(address)
        if Mode.RAID in self._modes.current():
            raise RegistrationClosed("Nobody can register right now. Try again later.")
        name = " ".join(username.split())
        if not SHORTEST_NAME <= len(name) <= LONGEST_NAME or not name.isprintable() or "#" in name:
            raise BadRequest(
                f"Choose a name of {SHORTEST_NAME} to {LONGEST_NAME} letters, digits or signs, without #.",
                param="username",
            )
        if is_profane(name, self._words):
            raise BadRequest("That name holds a word that this horde does not show. Choose another.", param="username")
        with self._database.transaction() as transaction:
            user_id = create_user(transaction, name)
            _, key = create_key(transaction, user_id, "registered")
        log.info("account.registered", user_id=user_id)
        return Registered(alias_of(name, user_id), key)
