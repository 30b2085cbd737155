"""Quiet hours: spans of the local day in which the worker asks for no jobs."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta

SPAN = re.compile(r"([01]\d|2[0-3]):([0-5]\d)-([01]\d|2[0-3]):([0-5]\d)")
DAY_MINUTES = 24 * 60


@dataclass(frozen=True)
class Span:
    """From one minute of the day to another; it may go over midnight."""

    start: int
    end: int

    def minutes_left(self, minute: int) -> int:
        """Minutes from this one to the end of the span; 0 outside of it."""
        length = (self.end - self.start) % DAY_MINUTES
        into = (minute - self.start) % DAY_MINUTES
        return length - into if into < length else 0


def parse_spans(text: str) -> tuple[Span, ...]:
    """Reads `23:00-07:00,12:30-13:00`. Raises ValueError."""
    found = []
    for part in (part.strip() for part in text.split(",")):
        match = SPAN.fullmatch(part)
        if match is None:
            raise ValueError("must be spans such as 23:00-07:00, comma separated")
        hour, minute, end_hour, end_minute = map(int, match.groups())
        span = Span(hour * 60 + minute, end_hour * 60 + end_minute)
        if span.start == span.end:
            raise ValueError(f"{part} is empty")
        found.append(span)
    return tuple(found)


def quiet_seconds(spans: tuple[Span, ...], now: datetime) -> float:
    """Seconds until the quiet hours that `now` lies in are over; 0 outside of them."""
    minute = now.hour * 60 + now.minute
    left = max((span.minutes_left(minute) for span in spans), default=0)
    if not left:
        return 0.0
    end = now.replace(second=0, microsecond=0) + timedelta(minutes=left)
    return (end - now).total_seconds()
