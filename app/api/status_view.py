"""The status page in words and charts: a look at the horde goes in, what the templates print comes out."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.domain.history import Minute, leading_models
from app.services.status_page import Delivered, HordeNow
from pages import charts

NAMED_MODELS = 4
"""Models that the chart of workers names; the others are one layer."""

ROW_MINUTES = 5
"""Minutes of one row of the table."""

NOTHING = "–"


@dataclass(frozen=True, slots=True)
class Tile:
    """One figure."""

    name: str
    value: str
    detail: str


@dataclass(frozen=True, slots=True)
class Row:
    """Some minutes of the hour's table."""

    until: str
    queued: str
    wait: str
    workers: str
    replies: str
    tokens: str


def shown(now: HordeNow) -> dict[str, Any]:
    """Return what `status_now.html` prints."""
    return {"now": now, "tiles": _tiles(now), "charts": _charts(now), "rows": _rows(now), "duration": duration}


def duration(seconds: float) -> str:
    """Say how long that is, in the two largest units."""
    whole = round(seconds)
    if whole < 1:
        return "under 1 s"
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


def _tiles(now: HordeNow) -> list[Tile]:
    last_wait = next((each.wait_seconds for each in reversed(now.hour) if each and each.wait_seconds is not None), None)
    tokens = sum(each.tokens for each in now.delivered)
    return [
        Tile("Models online", f"{now.models_online:,}", ""),
        Tile("Workers online", f"{now.workers:,}", f"{_count(now.threads, 'job')} at once"),
        Tile("Waiting", f"{int(now.queued.entries):,}", f"{now.queued.tokens:,.0f} tokens asked for"),
        Tile("Usual wait", NOTHING if last_wait is None else duration(last_wait), "until a worker begins"),
        Tile("Replies", f"{sum(each.replies for each in now.delivered):,}", f"{tokens:,} tokens in the last hour"),
    ]


def _charts(now: HordeNow) -> list[charts.Chart]:
    queued = [None if each is None else each.queued for each in now.hour]
    waits = [None if each is None else each.wait_seconds for each in now.hour]
    waited = _range(waits, "Lately {}, at most {}.", duration)
    tokens = [each.tokens for each in now.delivered]
    told = f"{sum(tokens):,} tokens, at most {max(tokens):,} a minute."
    layers = _workers_by_model(now.hour)
    return [
        charts.area("Waiting", "jobs", queued, _range(queued, "Now {}, at most {}.", "{:,.0f}".format)),
        charts.area("Usual wait", "seconds until a worker begins", waits, waited),
        charts.stack("Workers by model", "workers", layers, _now_by_model(layers)),
        charts.bars("Throughput", "tokens a minute", tokens, told),
    ]


def _range(values: Sequence[float | None], words: str, said: Callable[[float], str]) -> str:
    """Say the last value and the largest."""
    known = [value for value in values if value is not None]
    return words.format(said(known[-1]), said(max(known))) if known else "Nothing was noted within the hour."


def _workers_by_model(hour: Sequence[Minute | None]) -> dict[str, list[float | None]]:
    """Return the workers of each model minute by minute; of all but a few models together."""
    names = leading_models(hour, NAMED_MODELS)
    layers: dict[str, list[float | None]] = {
        name: [None if each is None else each.workers.get(name, 0) for each in hour] for name in names
    }
    others: list[float | None] = [
        None if each is None else sum(count for name, count in each.workers.items() if name not in names)
        for each in hour
    ]
    return layers | {"other models": others} if any(others) else layers


def _now_by_model(layers: dict[str, list[float | None]]) -> str:
    """Say how many workers each model had at the last look."""
    last = {
        name: next((value for value in reversed(values) if value is not None), 0) for name, values in layers.items()
    }
    if not last:
        return "No worker was online within the hour."
    return f"Now {', '.join(f'{name} {count:,.0f}' for name, count in last.items())}."


def _rows(now: HordeNow) -> list[Row]:
    """Return the hour in rows, the newest first."""
    minute = now.at.replace(second=0, microsecond=0)
    rows = []
    for end in range(len(now.hour), 0, -ROW_MINUTES):
        begin = end - ROW_MINUTES
        until = minute - timedelta(minutes=len(now.hour) - end)
        rows.append(_row(until, now.hour[begin:end], now.delivered[begin:end]))
    return rows


def _row(until: datetime, looks: Sequence[Minute | None], delivered: Sequence[Delivered]) -> Row:
    seen = [look for look in looks if look is not None]
    waits = [look.wait_seconds for look in seen if look.wait_seconds is not None]
    return Row(
        until=f"{until:%H:%M}",
        queued=_most(look.queued for look in seen if look.queued is not None),
        wait=duration(max(waits)) if waits else NOTHING,
        workers=_most(sum(look.workers.values()) for look in seen),
        replies=f"{sum(each.replies for each in delivered):,}",
        tokens=f"{sum(each.tokens for each in delivered):,}",
    )


def _most(values: Iterable[int]) -> str:
    return f"{largest:,}" if (largest := max(values, default=None)) is not None else NOTHING


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
