"""The name of the database, under which a process remembers what it knows of it."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, connections


def name() -> str:
    """As every thread's connection has it, without looking for this thread's: bodies ask for it several times each."""
    return str(connections.settings[DEFAULT_DB_ALIAS]["NAME"])


def is_lost(error: BaseException) -> bool:
    """Whether an OperationalError or InterfaceError says that the server is gone or going.

    What else it refuses (a row too long for an index, a statement that takes too long) it would refuse again.
    """
    code = getattr(error.__cause__, "pgcode", None)
    return code is None or code.startswith(("08", "57P"))
