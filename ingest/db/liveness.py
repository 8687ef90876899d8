"""Whether this thread's connection needs to be asked if it is alive: that is a journey for every body.

A thread whose body was stored by another one has not used its own connection, so only who stores takes note.
"""

from __future__ import annotations

import threading
import time

from django.db import DEFAULT_DB_ALIAS, connections

TRUSTED_FOR = 1.0
"""Seconds for which a connection that was used is taken to be alive."""

_connection = threading.local()  # as Django's connections are


def used() -> None:
    """The connection answered just now."""
    _connection.used = time.monotonic()


def spare_the_question() -> None:
    """Do not ask a connection that was used a moment ago. If it died in that moment the sender gets a 503 and comes
    back."""
    if time.monotonic() - getattr(_connection, "used", -TRUSTED_FOR) < TRUSTED_FOR:
        connections[DEFAULT_DB_ALIAS].health_check_done = True  # type: ignore[attr-defined]
