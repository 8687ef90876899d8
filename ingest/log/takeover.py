"""End the sessions of processes that were cut off from the database, or stand still, and keep others waiting.

A transaction that has written holds back every reader of the log, and a follower's lock keeps all other processes from
its events. A process that is cut off says nothing more, and Postgres waits for it. So a process that follows looks for
sessions of Dossier whose open transaction has waited for its client for PATIENCE seconds, and ends them: the client
finds its connection gone and does the work again.

The lock of a session (a leader's, a deliverer's, that of a webhook) keeps others waiting even outside of a transaction.
Who holds one makes a statement about once a second, so that a session without one for PATIENCE seconds is ended too.
Only workers are silent while they analyze: their leases end instead.

A COPY of many rows is one statement for as long as it takes, and waits for its client again and again: it is ended when
it has sent nothing for PATIENCE seconds.
"""

from __future__ import annotations

import time
from datetime import datetime

import structlog
from django.db import connection

PATIENCE = 4.0
"""Seconds. Between two statements of one transaction our processes take milliseconds, and on a busy machine tenths."""
NAME = "dossier"
"""Beginning of the `application_name` of our sessions; nobody else's transactions are ended."""

_SILENT = """
SELECT pid, state_change, bytes_processed FROM pg_stat_activity AS a LEFT JOIN pg_stat_progress_copy USING (pid)
WHERE a.datname = current_database() AND usename = current_user AND pid <> pg_backend_pid()
  AND application_name LIKE %s AND wait_event_type = 'Client'
  AND (state LIKE 'idle in transaction%%' OR (state = 'active' AND wait_event = 'ClientWrite')
    OR (state = 'idle' AND application_name <> %s))
  AND state_change < clock_timestamp() - %s * interval '1 second'
  AND (backend_xid IS NOT NULL OR EXISTS (
    SELECT 1 FROM pg_locks AS l WHERE l.pid = a.pid AND l.locktype = 'advisory' AND l.granted))
"""
_END = """
SELECT application_name, pg_terminate_backend(pid) FROM pg_stat_activity
JOIN unnest(%s::integer[], %s::timestamptz[]) AS silent (silent_pid, since) ON pid = silent_pid AND state_change = since
"""

log = structlog.get_logger("follow")
_Sent = tuple[int, datetime, int]
"""A session, the start of its COPY, and the bytes that it has sent."""
_sent: dict[_Sent, float] = {}
"""Time at which this process first saw so many bytes of a COPY that waits for its client."""


def end_forsaken() -> int:
    """End such sessions; how many there were."""
    with connection.cursor() as cursor:
        cursor.execute(_SILENT, (f"{NAME} %", f"{NAME} worker", PATIENCE))
        silent = _without_progress(cursor.fetchall())
        if not silent:
            return 0
        cursor.execute(_END, tuple(map(list, zip(*silent, strict=True))))
        ended = [name for name, done in cursor.fetchall() if done]
    if ended:
        log.warning("ended sessions of processes that were cut off", sessions=ended)
    return len(ended)


def _without_progress(found: list[tuple[int, datetime, int | None]]) -> list[tuple[int, datetime]]:
    """Sessions, with the start of their silence, without those whose COPY has sent something of late."""
    now = time.monotonic()
    copies = {(pid, since, sent): now for pid, since, sent in found if sent is not None}
    still = {one: min(at, _sent.get(one, at)) for one, at in copies.items()}
    _sent.clear()
    _sent.update(still)
    return [
        (pid, since) for pid, since, sent in found if sent is None or now - still[pid, since, sent] > PATIENCE
    ]
