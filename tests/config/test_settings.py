"""Settings: read once, checked whole, and shown without their secrets."""

import pytest
from pydantic import ValidationError

from config.settings import MASK, Settings, SettingsError, load_launcher_settings, load_settings

GOOD = {"DATABASE_URL": "postgres://horde:secret@db.example/horde", "REDIS_URL": "rediss://:secret@redis.example:6380"}


@pytest.fixture(autouse=True)
def environment(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> None:
    """A good environment, and no .env file in sight."""
    monkeypatch.chdir(tmp_path_factory.mktemp("empty"))
    for name in Settings.model_fields:
        monkeypatch.delenv(name.upper(), raising=False)
    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)


def test_a_heroku_style_database_url_is_understood() -> None:
    assert load_settings().database_url == "postgresql+psycopg://horde:secret@db.example/horde"


def test_every_problem_is_listed_at_once_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DATABASE_URL")
    monkeypatch.setenv("REDIS_URL", "http://redis.example")
    monkeypatch.setenv("NATIVE_THREADS", "many")
    monkeypatch.setenv("SERVICE_PASSKEY", "short")
    with pytest.raises(SettingsError) as refused:
        load_settings()
    text = str(refused.value)
    assert "DATABASE_URL: is not set" in text
    assert "REDIS_URL: must be a redis://" in text
    assert "NATIVE_THREADS:" in text
    assert "SERVICE_PASSKEY:" in text


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("DATABASE_URL", "mysql://db"),
        ("PORT", "0"),
        ("PORT", "65536"),
        ("VERDICT_WAIT_SECONDS", "-1"),
        ("SERVICE_PASSKEY", "too-short"),
        ("MAX_FAULTS", "0"),
        ("HORDE_LOG_LEVEL", "LOUD"),
        ("FLOWER_BASIC_AUTH", "nocolon"),
        ("TRUSTED_PROXIES", "9"),
        ("TRUSTED_PROXIES", "-1"),
        ("TRUSTED_PROXIES", "10.0.0.0/33"),
        ("TRUSTED_PROXIES", "10.0.0.0/8,"),
    ],
)
def test_a_bad_value_is_refused_by_name(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=name):
        load_settings()


def test_settings_cannot_be_changed() -> None:
    with pytest.raises(ValidationError):
        load_settings().port = 1  # type: ignore[misc]


def test_secrets_are_masked_when_they_are_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SERVICE_PASSKEY", "a-passkey-of-length")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "an-s3-secret")
    shown = load_settings().masked()
    assert shown["database_url"] == f"postgresql+psycopg://{MASK}@db.example/horde"
    assert shown["service_passkey"] == MASK
    assert not {"secret", "a-passkey-of-length", "an-s3-secret"} & {str(value) for value in shown.values()}
    assert "secret@" not in str(shown)
    assert "a-passkey-of-length" not in repr(load_settings())


def test_the_broker_is_redis_unless_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().celery_broker_url == GOOD["REDIS_URL"]
    monkeypatch.setenv("BROKER_URL", "redis://broker.example")
    assert load_settings().celery_broker_url == "redis://broker.example"


def test_every_setting_says_what_it_means() -> None:
    assert [name for name, field in Settings.model_fields.items() if not field.description] == []


@pytest.mark.parametrize("name", ["DATABASE_URL", "REDIS_URL"])
def test_the_launchers_refusal_of_a_url_does_not_show_its_password(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "mysql://user:hidden@host/x")
    with pytest.raises(SettingsError, match=name) as refused:
        load_launcher_settings()
    assert "hidden" not in str(refused.value)


def test_leases_are_in_redis_unless_they_have_one_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_settings().leases_redis_url == GOOD["REDIS_URL"]
    monkeypatch.setenv("LEASES_URL", "redis://leases.example")
    assert load_settings().leases_redis_url == "redis://leases.example"
