"""Every refusal that the horde answers with, as one tree.

    HordeError
    ├── ContractRefusal          the body breaks the chat contract (OpenAI's words)
    ├── InvalidApiKey            401
    ├── WrongCredentials         403
    ├── RequestNotFound          404
    ├── InvalidJobId             404
    ├── OperationKeyMismatch     409
    ├── ChatReplyRefused         400
    ├── NoEligibleWorker         503
    ├── ServiceUnavailable       503
    └── ...                      one class a return code, below

Each class carries its HTTP status and return code (`rc`); the message tells the
person what to do. Codes: specification, details D3 and the wire reference.
"""

from collections.abc import Mapping
from typing import ClassVar


class HordeError(Exception):
    """Root of all refusals."""

    status: ClassVar[int] = 500
    rc: ClassVar[str] = "InternalError"

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        metadata: Mapping[str, object] | None = None,
        retry_after_seconds: int | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.param = param
        self.metadata = dict(metadata) if metadata else None
        self.retry_after_seconds = retry_after_seconds

    @property
    def http_status(self) -> int:
        """HTTP status of the answer."""
        return self.status

    @property
    def code(self) -> str:
        """The horde's return code."""
        return self.rc


class ContractRefusal(HordeError):
    """A request body that the chat contract refuses, in OpenAI's words where OpenAI refuses it too."""

    status = 400
    rc = "invalid_request"

    def __init__(
        self,
        message: str,
        *,
        param: str | None = None,
        code: str | None = None,
        status: int = 400,
        metadata: Mapping[str, object] | None = None,
    ) -> None:
        super().__init__(message, param=param, metadata=metadata)
        self._code = code or self.rc
        self._status = status

    @property
    def http_status(self) -> int:
        """HTTP status of the answer: 400, or 404 for an unknown model, 413 for a body too large."""
        return self._status

    @property
    def code(self) -> str:
        """OpenAI's code, or `invalid_request` where OpenAI's is null (details D3)."""
        return self._code


class BadRequest(HordeError):
    """A native body or header that cannot be used; the message names the key."""

    status = 400
    rc = "BadRequest"


class ValidationFailed(HordeError):
    """Keys of a text body that cannot be used, all at once, as existing clients read them."""

    status = 400
    rc = "ValidationFailed"

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__("Input payload validation failed")
        self.errors = dict(errors)


class MissingPrompt(HordeError):
    """A text request with an empty prompt."""

    status = 400
    rc = "MissingPrompt"


class TokenOverflow(HordeError):
    """A text request that wants a longer reply than its context holds."""

    status = 400
    rc = "TokenOverflow"


class TooManyStopSequences(HordeError):
    """More stop sequences than a text request may have."""

    status = 400
    rc = "TooManyStopSequences"


class ExcessiveStopSequence(HordeError):
    """Stop sequences of a text request that are too long together."""

    status = 400
    rc = "ExcessiveStopSequence"


class MissingFullSamplerOrder(HordeError):
    """A `sampler_order` that does not name seven samplers."""

    status = 400
    rc = "MissingFullSamplerOrder"


class InvalidPriorityUsername(HordeError):
    """A worker's `priority_usernames` holds what names no account."""

    status = 400
    rc = "InvalidPriorityUsername"


class WorkerNotFound(HordeError):
    """No worker has an id that the request names."""

    status = 404
    rc = "WorkerNotFound"


class InvalidApiKey(HordeError):
    """The key is unknown, revoked or malformed; the answer is the same for all three."""

    status = 401
    rc = "InvalidAPIKey"


class WrongCredentials(HordeError):
    """The key is good, but what it asks for belongs to somebody else."""

    status = 403
    rc = "WrongCredentials"


class AnonForbiddenWorker(HordeError):
    """The anonymous account may not run workers."""

    status = 403
    rc = "AnonForbiddenWorker"


class WorkerMaintenance(HordeError):
    """The worker is in maintenance and gets no jobs until its owner ends it."""

    status = 403
    rc = "WorkerMaintenance"


class OnlyServiceAccountProxy(HordeError):
    """Only a service account may vouch for a client's address (details D18)."""

    status = 400
    rc = "OnlyServiceAccountProxy"


class RequestNotFound(HordeError):
    """No such request for this caller; also when it exists and belongs to somebody else."""

    status = 404
    rc = "RequestNotFound"


class InvalidJobId(HordeError):
    """A worker named a job that the horde never gave out."""

    status = 404
    rc = "InvalidJobID"


class UserNotFound(HordeError):
    """No account has this id."""

    status = 404
    rc = "UserNotFound"


class FilterNotFound(HordeError):
    """No moderation filter has this id."""

    status = 404
    rc = "FilterNotFound"


class NotFound(HordeError):
    """No such route."""

    status = 404
    rc = "NotFound"


class MethodNotAllowed(HordeError):
    """The route exists and does not take this method."""

    status = 405
    rc = "MethodNotAllowed"


class OperationKeyMismatch(HordeError):
    """The operation key was used before with another body."""

    status = 409
    rc = "OperationKeyMismatch"


class LeaseNotFound(HordeError):
    """No lease of this id is known: it never was, was lost, or its job was submitted. The job may go on."""

    status = 404
    rc = "LeaseNotFound"


class LeaseEnded(HordeError):
    """The job was faulted, timed out or cancelled: nobody waits for its text any more."""

    status = 410
    rc = "LeaseEnded"


class ProgressOutOfStep(HordeError):
    """A post is not the next one; `next_seq` says from where to send again."""

    status = 409
    rc = "ProgressOutOfStep"


class ProgressCapReached(HordeError):
    """A job posted as much text as it may; its reply still counts when it is submitted."""

    status = 413
    rc = "ProgressCapReached"


class ProgressUnavailable(HordeError):
    """Redis cannot be reached right now, so no progress is taken. The job goes on and its reply counts."""

    status = 503
    rc = "ProgressUnavailable"


class AbortedGen(HordeError):
    """The job was ended before this submit: faulted, cancelled, or delivered by another worker."""

    status = 400
    rc = "AbortedGen"


class ChatReplyRefused(HordeError):
    """The reply breaks the request's contract; the message names what failed (contract C6)."""

    status = 400
    rc = "ChatReplyRefused"


class KudosCapExceeded(HordeError):
    """The quote is above the request's own `horde.max_kudos`."""

    status = 400
    rc = "KudosCapExceeded"


class CorruptPrompt(HordeError):
    """A filter of the operator's refuses the text (native API N6)."""

    status = 400
    rc = "CorruptPrompt"


class RequiresTrust(HordeError):
    """Several generations without batching are for trusted accounts (wire reference 2.1)."""

    status = 400
    rc = "RequiresTrust"


class DeletedUser(HordeError):
    """The account was deleted."""

    status = 403
    rc = "DeletedUser"


class TooManyPrompts(HordeError):
    """The account has as many requests waiting as it may have (wire reference 4.8)."""

    status = 429
    rc = "TooManyPrompts"


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


class NoWorkerModSelected(HordeError):
    """The body changes nothing about the worker."""

    status = 400
    rc = "NoWorkerModSelected"


class NoFilterModSelected(HordeError):
    """The body changes nothing about the filter."""

    status = 400
    rc = "NoFilterModSelected"


class TooLongWorkerName(HordeError):
    """A worker's name has 5 to 100 printable characters."""

    status = 400
    rc = "TooLongWorkerName"


class WorkerNameAlreadyExists(HordeError):
    """Another worker has this name."""

    status = 400
    rc = "WorkerNameAlreadyExists"


class Locked(HordeError):
    """The worker has a job under way, so it cannot be deleted yet."""

    status = 423
    rc = "Locked"


class MessageNotFound(HordeError):
    """No message to workers has this id."""

    status = 404
    rc = "MessageNotFound"


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


class NoEligibleWorker(HordeError):
    """No online chat worker serves any listed model (details D1)."""

    status = 503
    rc = "no_eligible_worker"


class ServiceUnavailable(HordeError):
    """A service that the horde needs cannot be reached right now; nothing was accepted."""

    status = 503
    rc = "service_unavailable"


class RegistrationClosed(HordeError):
    """Nobody can register while the horde is raided."""

    status = 403
    rc = "RegistrationClosed"


class WorkerFlaggedMaintenance(HordeError):
    """A moderator flagged the worker's owner; the worker gets no jobs."""

    status = 403
    rc = "WorkerFlaggedMaintenance"


class WorkerInviteOnly(HordeError):
    """The horde takes new workers of invited owners only."""

    status = 403
    rc = "WorkerInviteOnly"


class TooManyWorkers(HordeError):
    """The owner, who is not trusted yet, has as many workers online as it may."""

    status = 403
    rc = "TooManyWorkers"


class TooManyWorkersTrusted(HordeError):
    """The owner has as many workers online as it may."""

    status = 403
    rc = "TooManyWorkersTrusted"


class TooManySameIps(HordeError):
    """As many workers as may are online from this address."""

    status = 403
    rc = "TooManySameIPs"


class TooManyNewIps(HordeError):
    """The owner's workers came from too many addresses within an hour."""

    status = 403
    rc = "TooManyNewIPs"


class UnsafeIp(HordeError):
    """The address belongs to a network that the operator does not take workers from."""

    status = 403
    rc = "UnsafeIP"


class TimeoutIp(HordeError):
    """The address is kept out for a time, after prompts that were refused."""

    status = 403
    rc = "TimeoutIP"


class MaintenanceMode(HordeError):
    """The horde takes no requests for now."""

    status = 400
    rc = "MaintenanceMode"


class ProfaneWorkerName(HordeError):
    """The worker's name holds a word that the operator refuses."""

    status = 400
    rc = "ProfaneWorkerName"


class ProfaneWorkerInfo(HordeError):
    """The worker's info holds a word that the operator refuses."""

    status = 400
    rc = "ProfaneWorkerInfo"


class ProfaneBridgeAgent(HordeError):
    """The bridge agent holds a word that the operator refuses."""

    status = 400
    rc = "ProfaneBridgeAgent"


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


class FaultWhenKudosSending(HordeError):
    """The giving account is suspicious."""

    status = 400
    rc = "FaultWhenKudosSending"


class FaultWhenKudosReceiving(HordeError):
    """The receiving account is suspicious."""

    status = 400
    rc = "FaultWhenKudosReceiving"


class TooManyCalls(HordeError):
    """The address or the key called more often than it may; `Retry-After` says when it may again."""

    status = 429
    rc = "rate_limit_exceeded"


class StorageUnavailable(HordeError):
    """The object store cannot be reached right now; nothing was accepted, or the request was given up."""

    status = 503
    rc = "storage_unavailable"


class PayloadTooLarge(HordeError):
    """The body is above the limit."""

    status = 413
    rc = "PayloadTooLarge"
