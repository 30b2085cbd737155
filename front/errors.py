"""Everything the front can refuse or fail with, and how it is said (front F5, details D3).

One table maps the horde's return codes to statuses; one function a cause builds
the problem. The envelope always has its five keys.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from app.domain.declaration import Guarantee
from app.domain.errors import HordeError, StorageUnavailable
from app.domain.images.parts import IMAGE_FAULTS
from front.wire import encode

RETRY_AFTER_LONGEST = 60
"""Longer waits are ignored by one SDK and slept through by another (contract reference 4.6)."""

CAPACITY_RETRY_SECONDS = 5
DRAIN_RETRY_SECONDS = 2
AVAILABILITY_RETRY_SECONDS = 30

LONGEST_ECHO = 200
"""Characters of a client's own text that a message repeats."""

STATUS_OF_CODE: Mapping[str, int] = {
    "KudosUpfront": 402,
    "TooManyPrompts": 429,
    "CorruptPrompt": 400,
    "KudosCapExceeded": 400,
}
"""Return codes whose status differs on the front; every other code keeps the status of the native API."""

SHARED_KEY_PREFIX = "SharedKey"
"""Every trouble with a shared key is a matter of kudos: 402."""

FRONT_CODE: Mapping[str, str] = {"InvalidAPIKey": "invalid_api_key"}
"""Return codes that the front spells as OpenAI does."""

BAD_KEY = (
    "Incorrect API key provided. Send a key of this horde as 'Authorization: Bearer <key>', "
    "or leave the header out to ask anonymously."
)


@dataclass(frozen=True, slots=True)
class Problem:
    """What the client is told. `no_retry` says that the horde may hold the request already, or refuses it for good."""

    status: int
    code: str
    message: str
    param: str | None = None
    metadata: Mapping[str, object] | None = None
    retry_after: int | None = None
    no_retry: bool = False

    def envelope(self) -> bytes:
        """The OpenAI error envelope."""
        kind = "server_error" if self.status >= 500 else "invalid_request_error"
        return encode(
            {
                "error": {
                    "message": self.message,
                    "type": kind,
                    "param": self.param,
                    "code": self.code,
                    "metadata": self.metadata,
                }
            }
        )

    def native_body(self) -> bytes:
        """The body that native clients and workers read."""
        return encode({"message": self.message, "rc": self.code})

    def headers(self) -> dict[str, str]:
        """Headers that go with the status."""
        headers: dict[str, str] = {}
        if self.retry_after is not None:
            headers["Retry-After"] = str(clamp_retry_after(self.retry_after))
        if self.no_retry:
            headers["x-should-retry"] = "false"
        return headers


class FrontError(Exception):
    """A problem on its way to the client."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(problem.code)
        self.problem = problem

    def after_submit(self) -> "FrontError":
        """The same problem for a request that the horde may hold (details D9)."""
        return FrontError(replace(self.problem, no_retry=True))


def clamp_retry_after(seconds: float) -> int:
    """Whole seconds between 1 and 60 (details D4)."""
    return max(1, min(RETRY_AFTER_LONGEST, int(seconds)))


def from_horde_error(error: HordeError) -> Problem:
    """A refusal that the shared rules raised here."""
    return Problem(
        status=_status_of(error.code, error.http_status),
        code=FRONT_CODE.get(error.code, error.code),
        message=error.message,
        param=error.param,
        metadata=error.metadata,
        retry_after=error.retry_after_seconds,
    )


def from_native(status: int, body: Mapping[str, object], retry_after: str | None) -> Problem:
    """A refusal that a root answered with; `body` holds at least its `rc`."""
    code = str(body["rc"])
    param = body.get("param")
    metadata = body.get("metadata")
    message = BAD_KEY if code == "InvalidAPIKey" else str(body.get("message") or "The horde refused the request.")
    return Problem(
        status=_status_of(code, status if status < 500 or status == 503 else 502),
        code=FRONT_CODE.get(code, code),
        message=message,
        param=param if isinstance(param, str) else None,
        metadata=metadata if isinstance(metadata, dict) else None,
        retry_after=int(retry_after) if retry_after is not None and retry_after.isdecimal() else None,
        no_retry=code == "OperationKeyMismatch",
    )


def _status_of(code: str, native: int) -> int:
    return 402 if code.startswith(SHARED_KEY_PREFIX) else STATUS_OF_CODE.get(code, native)


def invalid_key() -> Problem:
    """The Authorization header holds something that cannot be a key."""
    return Problem(401, "invalid_api_key", BAD_KEY)


def at_capacity(whose: str) -> Problem:
    """Admission refused: `whose` names the cap that is full."""
    return Problem(
        503,
        "FrontAtCapacity",
        f"Too many open requests {whose}. Wait for one of them to end, then try again.",
        retry_after=CAPACITY_RETRY_SECONDS,
    )


def draining() -> Problem:
    """The process is about to stop."""
    return Problem(
        503,
        "service_unavailable",
        "This server is restarting. Try again in a few seconds.",
        retry_after=DRAIN_RETRY_SECONDS,
    )


def body_too_slow(seconds: float) -> Problem:
    """The client did not send its body in time."""
    return Problem(408, "BodyTooSlow", f"The request body did not arrive within {seconds:g} seconds. Send it again.")


def body_too_large(limit: int) -> Problem:
    """The body is above the limit."""
    return Problem(
        413, "PayloadTooLarge", f"The request body is larger than {limit} bytes. Send a shorter conversation."
    )


def encoded_body(encoding: str) -> Problem:
    """The body is compressed, which no route takes."""
    return Problem(
        415, "UnsupportedContentEncoding", f"Content-Encoding '{encoding}' is not supported. Send the body as it is."
    )


def not_http(status: int) -> Problem:
    """What came over the connection is no request that HTTP/1.1 knows."""
    return Problem(status, "invalid_request", "The request is not valid HTTP/1.1, or its head is too long.")


def unknown_route(method: str, path: str) -> Problem:
    """No such route."""
    return Problem(
        404,
        "invalid_request",
        f"Invalid URL ({method} {path}). This horde answers POST /v1/chat/completions, "
        "GET /v1/models and GET /v1/models/{id}; ask with chat completions.",
    )


def wrong_method(method: str, path: str) -> Problem:
    """The route takes another method."""
    return Problem(405, "invalid_request", f"Invalid method for URL ({method} {path}).")


def unknown_model(name: str, hint: str, names: list[str]) -> Problem:
    """`GET /v1/models/{id}` of a model that is not online."""
    shown = name if len(name) <= LONGEST_ECHO else f"{name[:LONGEST_ECHO]}..."
    problem = Problem(404, "model_not_found", f"The model '{shown}' does not exist or is not online.", param="model")
    return with_online_models(problem, hint, names)


def with_online_models(problem: Problem, hint: str, names: list[str]) -> Problem:
    """The problem, its message extended by close names (`hint`) and what is online (details D21)."""
    if not names:
        listed = " No chat model is online right now."
    else:
        shown = ", ".join(names[:20])
        more = f" and {len(names) - 20} more" if len(names) > 20 else ""
        listed = f"{hint} Online: {shown}{more}."
    return replace(problem, message=problem.message + listed)


def unknown_request() -> Problem:
    """An id that no request has."""
    return Problem(404, "RequestNotFound", "No request has this id, or it belongs to another account.")


def bad_event_id() -> Problem:
    """`Last-Event-ID` holds something that no event had."""
    return Problem(
        400,
        "invalid_request",
        "The header Last-Event-ID is not the id of an event of this stream. Leave it out to read from the beginning.",
        param="Last-Event-ID",
    )


def unreachable() -> Problem:
    """No root of the native API answered."""
    return Problem(502, "HordeUnreachable", "The horde cannot be reached right now. Try again in a minute.")


def defect() -> Problem:
    """Something broke here; the log says what."""
    message = "The server failed to handle this request. Report it with the x-request-id."
    return Problem(500, "InternalError", message, no_retry=True)


def deadline_exceeded(seconds: float) -> Problem:
    """The wait ended without an answer."""
    return Problem(
        408,
        "DeadlineExceeded",
        f"No worker delivered the reply within {seconds:g} seconds; the request was cancelled. "
        "Ask for fewer tokens or for a model with more workers.",
    )


def no_generation(reason: str) -> Problem:
    """The request ended without a reply."""
    return Problem(502, "NoGeneration", f"The request ended without a reply: {reason}. Send it again.")


def diverged() -> Problem:
    """The text that was streamed is not how the reply begins, so it cannot be completed."""
    return Problem(
        502,
        "StreamDiverged",
        "The worker that began this reply was replaced, and the other one's text differs from what was streamed. "
        "Discard it and ask again.",
        no_retry=True,
    )


def faulted(fault: Mapping[str, object] | None) -> Problem:
    """The horde gave the request up."""
    cause = fault or {}
    mended = _image_fault(cause)
    if mended is not None:
        return mended
    reason = str(cause.get("message") or "the workers that tried could not serve it")
    return Problem(
        502,
        "ChatRequestFaulted",
        f"The request was given up: {reason}",
        metadata={"rc": cause.get("rc")} if cause.get("rc") else None,
    )


def _image_fault(cause: Mapping[str, object]) -> Problem | None:
    """A fault of the request's own images, or of the store that should keep them; None for any other."""
    code, param, message = str(cause.get("rc")), cause.get("param"), str(cause.get("message"))
    if code in IMAGE_FAULTS:
        return Problem(400, code, message, param=param if isinstance(param, str) else None)
    if code == StorageUnavailable.rc:
        return Problem(StorageUnavailable.status, code, message, retry_after=AVAILABILITY_RETRY_SECONDS)
    return None


def no_eligible_worker(grace_seconds: float) -> Problem:
    """Workers serve the model, and none of them could take this request during the grace."""
    return Problem(
        503,
        "no_eligible_worker",
        f"No eligible worker came online within {grace_seconds:g} seconds; the request was cancelled. "
        "Loosen the worker selection in 'horde', or try again later.",
        retry_after=AVAILABILITY_RETRY_SECONDS,
    )


def queue_unavailable(wait_seconds: float | None) -> Problem:
    """`fail_fast` met no eligible thread (None) or a wait above the budget that is left."""
    if wait_seconds is None:
        return Problem(
            503,
            "queue_unavailable",
            "No eligible worker thread is online and the request asked to fail fast. Try again later.",
            retry_after=AVAILABILITY_RETRY_SECONDS,
        )
    return Problem(
        503,
        "queue_unavailable",
        f"The estimated wait is {wait_seconds:g} seconds, more than the request may take, "
        "and it asked to fail fast. Try again later.",
        retry_after=clamp_retry_after(wait_seconds),
    )


def declaration_gap(gap: Mapping[str, object]) -> Problem:
    """No online worker of the model declares everything that the request needs (details D4)."""
    missing = gap.get("missing")
    needs = [need for need in missing if isinstance(need, dict)] if isinstance(missing, list) else []
    told = ", ".join(f"{need.get('name')} (declared by {need.get('workers', 0)} workers)" for need in needs)
    only_guarantees = all(need.get("name") in frozenset(Guarantee) for need in needs)
    advice = (
        "Set horde.conformance to 'best_effort' to do without, or choose another model."
        if only_guarantees
        else "Leave the feature out, or choose another model."
    )
    return Problem(
        404,
        "no_worker_supports_features",
        f"No online worker of this model supports everything that the request needs: {told}. {advice}",
        metadata={"missing": needs},
    )


def limits_gap(gap: Mapping[str, object]) -> Problem:
    """Only a size limit stands between the request and a worker (details D4)."""
    limit, asked, largest = gap.get("limit"), gap.get("asked"), gap.get("largest")
    if limit == "max_context_length":
        # Agents look for this phrase to shorten the conversation on their own.
        message = (
            f"This model's maximum context length is {largest} tokens. However, the request needs {asked} tokens. "
            "Shorten the messages, lower max_tokens, or set horde.context_fit to 'truncate_oldest' to drop the oldest."
        )
    else:
        message = f"No online worker of this model takes {limit} {asked}; the largest declared is {largest}."
    return Problem(
        400,
        "no_worker_supports_limit",
        message,
        metadata={"limit": limit, "asked": asked, "largest": largest},
    )
