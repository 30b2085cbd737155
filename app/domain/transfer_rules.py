"""What amount of kudos may be given, and to whom a name points (wire reference 2.7, details D19)."""

from decimal import Decimal
from uuid import UUID

from app.domain.errors import InvalidKudosTransferAmount, InvalidTargetUsername, NegativeKudosTransfer
from app.domain.pricing import KUDOS

LARGEST_TRANSFER = 10**15
"""A thousand billion kudos, in millikudos: beyond it a number is a mistake."""

REVERSE_SECONDS = 60
"""For so long after a transfer, none goes the other way (wire reference 2.7)."""

_CENT = KUDOS // 100
_LONGEST_ID = 18


def transfer_amount(value: object) -> int:
    """Return the millikudos that a body asks to give: above 0, with at most two decimals.

    Raises InvalidKudosTransferAmount or NegativeKudosTransfer.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidKudosTransferAmount("amount: must be a number of kudos.", param="amount")
    return whole_millikudos(Decimal(str(value)))


def whole_millikudos(amount: Decimal) -> int:
    """Return kudos to be moved as millikudos: above 0, at most a thousand billion kudos, at most two decimals.

    Raises InvalidKudosTransferAmount or NegativeKudosTransfer.
    """
    if not amount.is_finite():
        raise InvalidKudosTransferAmount("amount: must be a number of kudos.", param="amount")
    if amount < 0:
        raise NegativeKudosTransfer("amount: must be above 0. Kudos are given, never taken.", param="amount")
    if amount * KUDOS > LARGEST_TRANSFER:
        raise InvalidKudosTransferAmount("amount: must be at most a thousand billion kudos.", param="amount")
    millikudos = amount * KUDOS
    if not millikudos or millikudos % _CENT:
        raise InvalidKudosTransferAmount("amount: must be above 0, with at most two decimals.", param="amount")
    return int(millikudos)


def target_of(username: object) -> int | UUID:
    """Return what a name points to: the account id after its last `#`, or a shared key's id.

    Raises InvalidTargetUsername.
    """
    if isinstance(username, str):
        number = username.rpartition("#")[2]
        if "#" in username and number.isascii() and number.isdigit() and len(number) <= _LONGEST_ID:
            return int(number)
        try:
            return UUID(username)
        except ValueError:
            pass
    raise InvalidTargetUsername("username: must be Name#number, or a shared key.", param="username")
