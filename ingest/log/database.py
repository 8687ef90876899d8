"""What a process knows of its database: the name under which it remembers things of it, and whether it is gone."""

from __future__ import annotations

from django.db import (
    DEFAULT_DB_ALIAS,
    DatabaseError,
    InterfaceError,
    InternalError,
    OperationalError,
    connections,
)


def name() -> str:
    """As every thread's connection has it, without looking for this thread's: bodies ask for it several times each."""
    return str(connections.settings[DEFAULT_DB_ALIAS]["NAME"])


def is_lost(error: BaseException) -> bool:
    """Whether the error says that the server is gone or going.

    What else a server refuses (a row too long for an index, a statement that takes too long) it would refuse again.
    """
    if not _is_bare(error) and not isinstance(error, (OperationalError, InterfaceError)):
        return False
    code = getattr(error.__cause__, "pgcode", None)
    return code is None or code.startswith(("08", "57P"))


def is_away(error: BaseException | None) -> bool:
    """Whether the same may be done later: the server is gone or overloaded, or takes nothing for a while.

    It is read-only where an administrator or a full disk wants it so; a process that stood still has lost its turn.
    """
    if isinstance(error, InternalError):
        return getattr(error.__cause__, "pgcode", None) in ("25006", "25P03")
    return _is_bare(error) or isinstance(error, (OperationalError, InterfaceError))


def _is_bare(error: BaseException | None) -> bool:
    """A driver whose server goes in the middle of an answer may say no more than that there was an error."""
    return type(error) is DatabaseError and error.__cause__ is not None


def is_deadlock(error: BaseException) -> bool:
    """Whether the server undid this transaction because others would have waited for it for ever, as it for them."""
    return getattr(error.__cause__, "pgcode", None) == "40P01"
