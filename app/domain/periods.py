"""The periods by which statistics are kept and asked for (wire reference 2.8)."""

from collections.abc import Mapping
from enum import StrEnum


class Period(StrEnum):
    """A length of time that statistics are kept by; `total` is one period without an end."""

    MINUTE = "minute"
    HOUR = "hour"
    DAY = "day"
    MONTH = "month"
    TOTAL = "total"


SPANS: Mapping[Period, tuple[Period, str]] = {
    Period.MINUTE: (Period.MINUTE, "1 minute"),
    Period.HOUR: (Period.MINUTE, "1 hour"),
    Period.DAY: (Period.HOUR, "1 day"),
    Period.MONTH: (Period.DAY, "30 days"),
}
"""What "the last hour" means: which rows are summed, and how far back. Each is a rolling span."""

KEPT: Mapping[Period, str] = {
    Period.MINUTE: "2 hours",
    Period.HOUR: "2 days",
    Period.DAY: "62 days",
}
"""How long rows of a period are kept: longer than any span that is summed from them."""
