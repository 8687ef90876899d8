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


def _is_bare(error: BaseException | None) -> bool:
    """A driver whose server goes in the middle of an answer may say no more than that there was an error."""
    return type(error) is DatabaseError and error.__cause__ is not None


def is_deadlock(error: BaseException) -> bool:
    """Whether the server undid this transaction because others would have waited for it for ever, as it for them."""
    return getattr(error.__cause__, "pgcode", None) == "40P01"
