"""What a process knows of its database: the name under which it remembers things of it, whether it is gone, and whether
this thread's connection needs to be asked if it is alive, which is a round trip for every body."""

from __future__ import annotations

import threading
import time

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connections,
)

TRUSTED_FOR = 1.0
"""Seconds for which a connection that was used is taken to be alive."""

_connection = threading.local()  # as Django's connections are


def name() -> str:
    """As every thread's connection has it, without looking for this thread's: bodies ask for it several times each."""
    return str(connections.settings[DEFAULT_DB_ALIAS]["NAME"])


def is_lost(error: BaseException | None) -> bool:
    """Whether the error says that the server is gone or going, or takes nothing for a while.

    It is read-only where an administrator or a full disk wants it so; a process that stood still has lost its turn.
    What else a server refuses (a row too long for an index, a statement that takes too long) it would refuse again.
    """
    code = getattr(getattr(error, "__cause__", None), "pgcode", None)
    if isinstance(error, InternalError):
        return code in ("25006", "25P03")
    if not _is_bare(error) and not isinstance(error, (OperationalError, InterfaceError)):
        return False
    return code is None or code.startswith(("08", "57P"))


def is_away(error: BaseException | None) -> bool:
    """Whether the same may be asked for later: the server is lost, or refused it as it was busy."""
    return is_lost(error) or isinstance(error, (OperationalError, InterfaceError))


def is_full(error: BaseException | None) -> bool:
    """Whether the server had no room left on its disk (SQLSTATE 53100)."""
    return getattr(getattr(error, "__cause__", None), "pgcode", None) == "53100"


def _is_bare(error: BaseException | None) -> bool:
    """A driver whose server goes in the middle of an answer may say no more than that there was an error."""
    return type(error) is DatabaseError and error.__cause__ is not None


def is_deadlock(error: BaseException) -> bool:
    """Whether the server undid this transaction because others would have waited for it for ever, as it for them."""
    return getattr(error.__cause__, "pgcode", None) == "40P01"


def note_use() -> None:
    """The connection of this thread answered just now. A thread whose body was stored by another one did not use its
    own."""
    _connection.used = time.monotonic()


def skip_health_check() -> None:
    """Do not ask a connection that was used a moment ago. If it died in that moment the sender gets a 503 and comes
    back."""
    if time.monotonic() - getattr(_connection, "used", -TRUSTED_FOR) < TRUSTED_FOR:
        connections[DEFAULT_DB_ALIAS].health_check_done = True  # type: ignore[attr-defined]
