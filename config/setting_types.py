"""What the values of settings may be, each refused in words that say what is wanted."""

from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, SecretStr

MOST_PROXIES = 8

AMQP = ("amqp://", "amqps://")
"""How URLs of a RabbitMQ begin."""


def _postgres_url(value: str) -> str:
    """Turn a Heroku-style `postgres://` into the dialect that SQLAlchemy knows."""
    scheme, separator, rest = value.partition("://")
    if not separator or scheme not in {"postgres", "postgresql", "postgresql+psycopg"}:
        raise ValueError("must be a postgres:// or postgresql:// URL")
    return f"postgresql+psycopg://{rest}"


def _redis_url(value: str) -> str:
    if not value.startswith(("redis://", "rediss://", "unix://")):
        raise ValueError("must be a redis://, rediss:// or unix:// URL")
    return value


def _broker_url(value: str) -> str:
    if not value.startswith(("redis://", "rediss://", "unix://", *AMQP)):
        raise ValueError("must be a redis://, rediss://, unix://, amqp:// or amqps:// URL")
    return value


def _http_url(value: str) -> str:
    if not value.startswith(("http://", "https://")):
        raise ValueError("must be an http:// or https:// URL")
    return value.rstrip("/")


def _login(value: SecretStr) -> SecretStr:
    user, separator, password = value.get_secret_value().partition(":")
    if not (user and separator and password):
        raise ValueError("must be user:password")
    return value


def _postgres_scheme(value: str) -> str:
    _postgres_url(value)
    return value


def _trusted_proxies(value: str) -> str:
    proxies_in(value)
    return value


Network = IPv4Network | IPv6Network


def proxies_in(value: str) -> int | tuple[Network, ...]:
    """What TRUSTED_PROXIES says: a number of proxies, or the networks that they are in.

    Raises ValueError for anything else.
    """
    text = value.strip()
    if text.isascii() and text.isdecimal():
        if int(text) > MOST_PROXIES:
            raise ValueError(f"must be 0 to {MOST_PROXIES} proxies, or their networks")
        return int(text)
    try:
        return tuple(ip_network(part.strip(), strict=False) for part in text.split(","))
    except ValueError:
        raise ValueError("must be a number, or networks such as 10.0.0.0/8, fd00::/8") from None


PostgresScheme = Annotated[str, AfterValidator(_postgres_scheme)]
PostgresUrl = Annotated[str, AfterValidator(_postgres_url)]
RedisUrl = Annotated[str, AfterValidator(_redis_url)]
BrokerUrl = Annotated[str, AfterValidator(_broker_url)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
TrustedProxies = Annotated[str, AfterValidator(_trusted_proxies)]
Login = Annotated[SecretStr, AfterValidator(_login)]
LogLevel = Literal["DEBUG", "INFO", "WARNING", "ERROR", "CRITICAL"]
