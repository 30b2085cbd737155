"""Refusals about kudos: quotes, holds, shared keys and transfers."""

from app.domain.errors.root import HordeError


class KudosCapExceeded(HordeError):
    """The quote is above the request's own `horde.max_kudos`."""

    status = 400
    rc = "KudosCapExceeded"


class KudosUpfront(HordeError):
    """The request needs kudos held that the account does not have (wire reference 4.8)."""

    status = 403
    rc = "KudosUpfront"


class SharedKeyEmpty(HordeError):
    """Everything that this key may spend is spent."""

    status = 403
    rc = "SharedKeyEmpty"


class SharedKeyExpired(HordeError):
    """The shared key was good until a time that is over."""

    status = 403
    rc = "SharedKeyExpired"


class SharedKeyInsufficientKudos(HordeError):
    """What is left on this key does not cover what the request may cost."""

    status = 403
    rc = "SharedKeyInsufficientKudos"


class NoSharedKeyModSelected(HordeError):
    """The body changes nothing about the shared key."""

    status = 400
    rc = "NoSharedKeyModSelected"


class InvalidKudosTransferAmount(HordeError):
    """The amount is no number of kudos that can be given."""

    status = 400
    rc = "InvalidKudosTransferAmount"


class NegativeKudosTransfer(HordeError):
    """The amount is below zero."""

    status = 400
    rc = "NegativeKudosTransfer"


class KudosTransferNotEnough(HordeError):
    """The account has less than the amount above its floor (details D19)."""

    status = 400
    rc = "KudosTransferNotEnough"


class InvalidTargetUsername(HordeError):
    """No account has this name and number."""

    status = 400
    rc = "InvalidTargetUsername"


class KudosTransferToAnon(HordeError):
    """The anonymous account takes no kudos."""

    status = 400
    rc = "KudosTransferToAnon"


class KudosTransferFromAnon(HordeError):
    """The anonymous account gives no kudos."""

    status = 400
    rc = "KudosTransferFromAnon"


class KudosTransferToSelf(HordeError):
    """An account cannot give kudos to itself."""

    status = 400
    rc = "KudosTransferToSelf"


class SourceAccountFlagged(HordeError):
    """The giving account is flagged."""

    status = 400
    rc = "SourceAccountFlagged"


class TargetAccountFlagged(HordeError):
    """The receiving account is flagged."""

    status = 400
    rc = "TargetAccountFlagged"


class EducationCannotSendKudos(HordeError):
    """An account of a school or university gives no kudos."""

    status = 400
    rc = "EducationCannotSendKudos"


class TransferDeletedUser(HordeError):
    """The giving or the receiving account was deleted."""

    status = 400
    rc = "DeletedUser"


class TransferSharedKeyExpired(HordeError):
    """The shared key that should get the kudos has expired."""

    status = 400
    rc = "SharedKeyExpired"


class TooFastKudosTransfers(HordeError):
    """The receiving account gave kudos to the giving one just now."""

    status = 400
    rc = "TooFastKudosTransfers"


class IdempotencyKeyConflict(HordeError):
    """The idempotency key was used before for another transfer."""

    status = 400
    rc = "IdempotencyKeyConflict"


class FaultWhenKudosSending(HordeError):
    """The giving account is suspicious."""

    status = 400
    rc = "FaultWhenKudosSending"


class FaultWhenKudosReceiving(HordeError):
    """The receiving account is suspicious."""

    status = 400
    rc = "FaultWhenKudosReceiving"
