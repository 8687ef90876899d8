"""What a process knows of its database: the name under which it remembers things of it, and whether it is gone."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, DatabaseError, InterfaceError, OperationalError, connections


def name() -> str:
    """As every thread's connection has it, without looking for this thread's: bodies ask for it several times each."""
    return str(connections.settings[DEFAULT_DB_ALIAS]["NAME"])


def is_lost(error: BaseException) -> bool:
    """Whether the error says that the server is gone or going.

    What else a server refuses (a row too long for an index, a statement that takes too long) it would refuse again.
    """
    # A driver whose server goes in the middle of an answer may say no more than that there was an error.
    bare = type(error) is DatabaseError and error.__cause__ is not None
    if not bare and not isinstance(error, (OperationalError, InterfaceError)):
        return False
    code = getattr(error.__cause__, "pgcode", None)
    return code is None or code.startswith(("08", "57P"))


def is_deadlock(error: BaseException) -> bool:
    """Whether the server undid this transaction because others would have waited for it for ever, as it for them."""
    return getattr(error.__cause__, "pgcode", None) == "40P01"
