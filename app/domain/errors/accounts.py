"""Refusals about who calls and what that account may do."""

from app.domain.errors.root import HordeError


class InvalidApiKey(HordeError):
    """The key is unknown, revoked or malformed; the answer is the same for all three."""

    status = 401
    rc = "InvalidAPIKey"


class WrongCredentials(HordeError):
    """The key is good, but what it asks for belongs to somebody else."""

    status = 403
    rc = "WrongCredentials"


class OnlyServiceAccountProxy(HordeError):
    """Only a service account may vouch for a client's address (details D18)."""

    status = 400
    rc = "OnlyServiceAccountProxy"


class UserNotFound(HordeError):
    """No account has this id."""

    status = 404
    rc = "UserNotFound"


class RequiresTrust(HordeError):
    """Several generations without batching are for trusted accounts (wire reference 2.1)."""

    status = 400
    rc = "RequiresTrust"


class DeletedUser(HordeError):
    """The account was deleted."""

    status = 403
    rc = "DeletedUser"


class UserBanned(HordeError):
    """The operator banned the account; the message says until when and why."""

    status = 403
    rc = "UserBanned"


class AnonForbiddenReport(HordeError):
    """The anonymous account reports nobody."""

    status = 403
    rc = "AnonForbiddenReport"


class ReportAlreadyOpen(HordeError):
    """The account has an open report about this target."""

    status = 409
    rc = "ReportAlreadyOpen"


class ReportNotFound(HordeError):
    """No report has this number."""

    status = 404
    rc = "ReportNotFound"


class NotOwner(HordeError):
    """What was named belongs to another account."""

    status = 403
    rc = "NotOwner"


class AnonymousOwnsNoKeys(HordeError):
    """The anonymous account cannot have keys of its own."""

    status = 403
    rc = "AnonForbiddenUserMod"


class NotModerator(HordeError):
    """Only a moderator may do this."""

    status = 403
    rc = "NotModerator"


class NoHordeModSelected(HordeError):
    """The body names no mode of the horde."""

    status = 400
    rc = "NoHordeModSelected"


class RegistrationClosed(HordeError):
    """Nobody can register while the horde is raided."""

    status = 403
    rc = "RegistrationClosed"


class ProfaneUserName(HordeError):
    """The account's name holds a word that the operator refuses."""

    status = 400
    rc = "ProfaneUserName"


class ProfaneUserContact(HordeError):
    """The contact holds a word that the operator refuses."""

    status = 400
    rc = "ProfaneUserContact"


class TooLongUserName(HordeError):
    """The account's name is too long."""

    status = 400
    rc = "TooLongUserName"


class NotAdmin(HordeError):
    """Only an admin may do this."""

    status = 403
    rc = "NotAdmin"


class NotPrivileged(HordeError):
    """Only the account itself or a moderator may do this."""

    status = 403
    rc = "NotPrivileged"


class AnonForbiddenUserMod(HordeError):
    """The anonymous account cannot be changed."""

    status = 403
    rc = "AnonForbiddenUserMod"


class NonServiceForbidden(HordeError):
    """Only a service account has a passkey."""

    status = 403
    rc = "NonServiceForbidden"


class NoUserModSelected(HordeError):
    """The body changes nothing about the account."""

    status = 400
    rc = "NoUserModSelected"
