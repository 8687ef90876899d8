"""Checks before a command, with one line for each fault: settings, the database, the home."""

from __future__ import annotations

import os
from pathlib import Path

import psycopg2

from deploy.env import InvalidSettingError
from deploy.privileges import PrivilegeError

ROOT = Path(__file__).resolve().parents[1]
NO_DATABASE = ("connection to server", "could not translate host name")
"""Beginnings of libpq's messages where it reached no server, or was not let in."""


def complaint(error: BaseException) -> str | None:
    """The line; None for a mistake of ours, whose traceback is wanted."""
    if isinstance(error, (InvalidSettingError, PrivilegeError)):
        return str(error)
    below = error.__cause__ or error
    if isinstance(below, psycopg2.OperationalError) and str(below).startswith(NO_DATABASE):
        why = str(below).splitlines()[0]
        return f"No database: {why}. Start Dossier, or check DATABASE_URL, else DOSSIER_HOME."
    if isinstance(error, OSError) and error.filename and _is_in_home(Path(os.fsdecode(error.filename))):
        return f"{os.fsdecode(error.filename)}: {error.strerror}. DOSSIER_HOME is the directory of Dossier's data."
    return None


def _is_in_home(path: Path) -> bool:
    """Whether the path is the home, in it, or on the way to it."""
    home = Path(os.environ.get("DOSSIER_HOME") or ROOT / ".dossier").absolute()
    return path in (home, *home.parents) or home in path.parents
