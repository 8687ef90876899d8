"""A look at the broker: does it answer, and how many tasks wait."""

from __future__ import annotations

from functools import cache

from django.conf import settings
from redis import Redis

QUEUE = "celery"
SOCKET = "redis+socket://"
TIMEOUT = 2.0  # seconds


@cache
def client() -> Redis:
    """Client of the broker in which Celery's tasks wait; a socket is spelt in another way there."""
    url: str = settings.CELERY_BROKER_URL
    if url.startswith(SOCKET):
        url = "unix://" + url.removeprefix(SOCKET).replace("virtual_host=", "db=")
    return Redis.from_url(url, socket_timeout=TIMEOUT, socket_connect_timeout=TIMEOUT)


def ping() -> None:
    """Returns when the broker answers; redis.exceptions.RedisError otherwise."""
    client().ping()


def queue_length() -> int:
    return int(client().llen(QUEUE))
