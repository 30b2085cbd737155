"""Asking a service whether it is there, whoever runs it."""

import http.client
import socket
from urllib.parse import urlsplit

import psycopg
import redis

SECONDS = 2
"""How long a service that runs may take to answer."""


def reach_postgres(url: str) -> None:
    """Connect to a PostgreSQL database.

    Raises OSError when it cannot be reached.
    """
    try:
        psycopg.connect(url.replace("postgresql+psycopg://", "postgresql://", 1), connect_timeout=SECONDS).close()
    except psycopg.Error as error:
        raise ConnectionError(str(error)) from error


def reach_redis(url: str) -> None:
    """Ping a Redis or Valkey.

    Raises OSError when it does not answer.
    """
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=SECONDS, socket_timeout=SECONDS) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise ConnectionError(str(error)) from error


def reach_http(url: str) -> None:
    """Connect to whatever serves this URL.

    Raises OSError when nothing listens there.
    """
    parts = urlsplit(url)
    if parts.hostname is None:
        raise ConnectionError(f"{url} is not a URL")
    default = http.client.HTTPS_PORT if parts.scheme == "https" else http.client.HTTP_PORT
    socket.create_connection((parts.hostname, parts.port or default), timeout=SECONDS).close()
