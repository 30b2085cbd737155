"""Who may do what moderators do: an account with that role, or an admin's (wire reference 1.4)."""

from app.adapters.database import Transaction
from app.domain.errors import NotModerator
from app.services.accounts import Caller, authenticate


def require_moderator(transaction: Transaction, api_key: str) -> Caller:
    """Return the moderator behind a key.

    Raises InvalidApiKey, and NotModerator for anybody else's key; a shared key is nobody's.
    """
    caller = authenticate(transaction, api_key)
    if not caller.moderates:
        raise NotModerator("This needs the key of a moderator.")
    return caller
