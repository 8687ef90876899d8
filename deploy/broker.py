"""A look at the broker: does it answer, and how many tasks wait."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from redis import Redis

QUEUE = "celery"
TIMEOUT = 2.0  # seconds


@cache
def client() -> Redis:
    if settings.REDIS_URL:
        return Redis.from_url(settings.REDIS_URL, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)
    path = str(settings.HOME.broker_socket)
    return Redis(unix_socket_path=path, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)


def ping() -> None:
    """Returns when the broker answers; redis.exceptions.RedisError otherwise."""
    client().ping()


def queue_length() -> int:
    return int(client().llen(QUEUE))
