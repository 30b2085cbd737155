"""Beat sends everything that is due, whatever its clock did before."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from celery import Celery

from tasks.scheduler import SteadyScheduler

PERIODS = {"often": 1.0, "seldom": 3600.0}


class Recording(SteadyScheduler):
    """Keeps what it would send."""

    sent: list[str]

    def apply_entry(self, entry: Any, producer: Any = None) -> None:
        self.sent.append(entry.name)


@pytest.fixture
def app(monkeypatch: pytest.MonkeyPatch) -> Celery:
    schedule = {name: {"task": name, "schedule": seconds} for name, seconds in PERIODS.items()}
    # Without an expiry of results, Celery adds no task of its own.
    settings = {"broker_url": "memory://", "beat_schedule": schedule, "result_expires": None}
    made = Celery("beat", set_as_current=False, config_source=settings)
    # A schedule that was read from its file belongs to whichever app is current.
    monkeypatch.setattr("celery._state._tls.current_app", made)
    return made


@pytest.fixture
def scheduler(app: Celery, tmp_path: Path) -> Iterator[Recording]:
    made = opened(app, tmp_path)
    yield made
    made.close()


def opened(app: Celery, folder: Path) -> Recording:
    made = Recording(app=app, schedule_filename=str(folder / "schedule"))
    made.sent = []
    return made


def run_at(scheduler: Recording, moment: datetime) -> None:
    for entry in scheduler.schedule.values():
        entry.last_run_at = moment


def ticks(scheduler: Recording) -> list[str]:
    """What a few looks send."""
    scheduler.sent.clear()
    for _ in range(10):
        scheduler.tick()
    return sorted(scheduler.sent)


def test_a_task_that_just_ran_is_not_sent(scheduler: Recording) -> None:
    run_at(scheduler, datetime.now(UTC))
    assert ticks(scheduler) == []


def test_every_task_is_sent_once_after_the_clock_was_put_back(scheduler: Recording) -> None:
    run_at(scheduler, datetime.now(UTC))
    assert ticks(scheduler) == []
    run_at(scheduler, datetime.now(UTC) + timedelta(hours=1))
    assert ticks(scheduler) == sorted(PERIODS)


def test_every_task_is_sent_once_when_the_last_beat_had_a_clock_ahead(app: Celery, tmp_path: Path) -> None:
    earlier = opened(app, tmp_path)
    run_at(earlier, datetime.now(UTC) + timedelta(hours=1))
    earlier.close()
    later = opened(app, tmp_path)
    assert ticks(later) == sorted(PERIODS)
    later.close()
