"""What runs keep, under its hash, for a time after its last use: summed windows and whole verdicts.

What a run concluded is in the log and stays; with what is kept here it can be done again, to the same bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime
from hashlib import sha256
from typing import Any

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from analyzers.contract import Sums
from analyzers.runs.models import Run, StoredVerdict, StoredWindow
from ingest.queries import dump_sums

AT_ONCE = 200
"""Rows deleted in one statement: while it works, readers of the log wait."""

_USED_AGAIN: Any = {"update_conflicts": True, "unique_fields": ["hash"], "update_fields": ["used_at"]}


def keep_window(sums: Mapping[str, Sums]) -> str:
    """The hash that these sums are kept under."""
    body = dump_sums(sums)
    digest = sha256(body).hexdigest()
    StoredWindow.objects.bulk_create([StoredWindow(hash=digest, body=body)], **_USED_AGAIN)
    return digest


def keep_verdict(digest: str, body: bytes) -> None:
    StoredVerdict.objects.bulk_create([StoredVerdict(hash=digest, body=body)], **_USED_AGAIN)


def still_kept(windows: Collection[str]) -> set[str]:
    """Those of these hashes under which a window is kept; it counts as used now, and so stays."""
    if not windows:
        return set()
    found = StoredWindow.objects.filter(hash__in=windows)
    found.update(used_at=Now())
    return set(found.values_list("hash", flat=True))


def is_repeatable(run: Run) -> bool:
    """Whether all that the run read is still kept."""
    wanted = {run.window_hash, *(past["hash"] for past in run.history)}
    return StoredWindow.objects.filter(hash__in=wanted).count() == len(wanted)


def drop_unused(now: datetime) -> int:
    """Delete what no run has used for `DOSSIER_RUN_RETENTION`; how much."""
    before = now - settings.RUN_RETENTION
    return sum(_drop(model._meta.db_table, before) for model in (StoredWindow, StoredVerdict))


def _drop(table: str, before: datetime) -> int:
    dropped = 0
    while True:
        with connection.cursor() as cursor:
            # Asked again outside: a run may take one up while this statement waits for it.
            cursor.execute(
                f"DELETE FROM {table} WHERE used_at < %s AND hash IN"
                f" (SELECT hash FROM {table} WHERE used_at < %s ORDER BY used_at LIMIT %s)",
                (before, before, AT_ONCE),
            )
            done = int(cursor.rowcount)
        dropped += done
        if done < AT_ONCE:
            return dropped
