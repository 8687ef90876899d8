"""The name of the database, under which a process remembers what it knows of it."""

from __future__ import annotations

from django.db import DEFAULT_DB_ALIAS, connections


def name() -> str:
    """As every thread's connection has it, without looking for this thread's: bodies ask for it several times each."""
    return str(connections.settings[DEFAULT_DB_ALIAS]["NAME"])
