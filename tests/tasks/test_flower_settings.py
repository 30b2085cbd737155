"""What Flower is told: nobody gets in without a password, and it keeps no more than it needs."""

import runpy

import pytest

from config.settings import get_settings
from tests.support.horde import ROOT
from tests.support.services import LocalServices


def flowers(services: LocalServices, monkeypatch: pytest.MonkeyPatch, **settings: str) -> dict[str, object]:
    """Flower's settings in this environment."""
    monkeypatch.delenv("FLOWER_BASIC_AUTH", raising=False)
    for name, value in (services.environment | settings).items():
        monkeypatch.setenv(name, value)
    get_settings.cache_clear()
    try:
        return runpy.run_path(str(ROOT / "flowerconfig.py"))
    finally:
        get_settings.cache_clear()


def test_without_a_password_nobody_gets_in(services: LocalServices, monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = (flowers(services, monkeypatch)["basic_auth"] for _ in range(2))
    assert isinstance(first, list)
    assert len(first[0].partition(":")[2]) >= 32
    assert first != second


def test_the_operators_password_is_the_only_one(services: LocalServices, monkeypatch: pytest.MonkeyPatch) -> None:
    given = flowers(services, monkeypatch, FLOWER_BASIC_AUTH="operator:a-long-password")
    assert given["basic_auth"] == ["operator:a-long-password"]


def test_it_forgets(services: LocalServices, monkeypatch: pytest.MonkeyPatch) -> None:
    told = flowers(services, monkeypatch)
    assert told["max_tasks"] == 5_000
    assert told["purge_offline_workers"]
    assert told["persistent"] is False
