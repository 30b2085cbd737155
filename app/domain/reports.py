"""What can be reported."""

from enum import StrEnum

LONGEST_REASON = 1000
"""Characters of a report's reason, and of the note that it is closed with."""


class ReportKind(StrEnum):
    """What a report's target names: a worker, an account that asks, or one request by its id or its job's."""

    WORKER = "worker"
    REQUESTER = "requester"
    REQUEST = "request"


class ReportState(StrEnum):
    """Which reports are wanted."""

    OPEN = "open"
    CLOSED = "closed"
    ALL = "all"
