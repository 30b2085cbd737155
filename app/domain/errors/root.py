"""The root of all refusals, and those that any route may answer with."""

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


class NotFound(HordeError):
    """No such route."""

    status = 404
    rc = "NotFound"


class MethodNotAllowed(HordeError):
    """The route exists and does not take this method."""

    status = 405
    rc = "MethodNotAllowed"


class Locked(HordeError):
    """The worker has a job under way, so it cannot be deleted yet."""

    status = 423
    rc = "Locked"


class ServiceUnavailable(HordeError):
    """A service that the horde needs cannot be reached right now; nothing was accepted."""

    status = 503
    rc = "service_unavailable"


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
