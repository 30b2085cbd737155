"""Refusals that workers and their owners meet."""

from app.domain.errors.root import HordeError


class InvalidPriorityUsername(HordeError):
    """A worker's `priority_usernames` holds what names no account."""

    status = 400
    rc = "InvalidPriorityUsername"


class WorkerNotFound(HordeError):
    """No worker has an id that the request names."""

    status = 404
    rc = "WorkerNotFound"


class AnonForbiddenWorker(HordeError):
    """The anonymous account may not run workers."""

    status = 403
    rc = "AnonForbiddenWorker"


class WorkerMaintenance(HordeError):
    """The worker is in maintenance and gets no jobs until its owner ends it."""

    status = 403
    rc = "WorkerMaintenance"


class InvalidJobId(HordeError):
    """A worker named a job that the horde never gave out."""

    status = 404
    rc = "InvalidJobID"


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


class NoWorkerModSelected(HordeError):
    """The body changes nothing about the worker."""

    status = 400
    rc = "NoWorkerModSelected"


class TooLongWorkerName(HordeError):
    """A worker's name has 5 to 100 printable characters."""

    status = 400
    rc = "TooLongWorkerName"


class WorkerNameAlreadyExists(HordeError):
    """Another worker has this name."""

    status = 400
    rc = "WorkerNameAlreadyExists"


class MessageNotFound(HordeError):
    """No message to workers has this id."""

    status = 404
    rc = "MessageNotFound"


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
