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


class NoEligibleWorker(HordeError):
    """No online chat worker serves any listed model (details D1)."""

    status = 503
    rc = "no_eligible_worker"


class ServiceUnavailable(HordeError):
    """A service that the horde needs cannot be reached right now; nothing was accepted."""

    status = 503
    rc = "service_unavailable"


class PayloadTooLarge(HordeError):
    """The body is above the limit."""

    status = 413
    rc = "PayloadTooLarge"
