"""Remedies for the lines of `manage.py doctor`, and server settings that break a promise."""

from __future__ import annotations

from django.conf import settings
from django.db import connection

from ingest.queries import cold_log, sharding_problems, unreadable_log, unreadable_telemetry

CURES = {
    "database: does not": "start Postgres, or correct DATABASE_URL",
    "database: stands": "see the log of Postgres and its disk; end what blocks it",
    "database: migrations": "run `manage.py migrate`",
    "database: version": "upgrade Postgres to 14 or newer",
    "database: fsync": "set it to on and restart Postgres",
    "database: full_page_writes": "set it to on and reload Postgres",
    "database: synchronous_commit": "set it to on (or remote_write, remote_apply) and reload Postgres",
    "database: connections": "raise max_connections, or lower DOSSIER_WEB_WORKERS or DOSSIER_WEB_THREADS",
    "disk: ": "free space, or shorten a retention (docs: operate/backup)",
    "clock: ": "start NTP on this machine (timedatectl set-ntp true)",
    "broker: ": "start Redis or Valkey, or correct REDIS_URL; it may start empty",
    "supervisor: ": "restart `manage.py up` on this node",
    "processes: ": "logs of that process in DOSSIER_HOME/logs; restarts.jsonl has the reasons",
    "followers: ": "error in followers.log; an incident comes late until it is gone",
    "delivery: ": "error in delivery.log; start `manage.py up` or `manage.py run delivery` somewhere",
    "worker: ": "start `manage.py up` or `manage.py run worker` somewhere; see worker.log",
    "DOSSIER_SECRET_KEY": "give this node the key of the others, or the former one in DOSSIER_SECRET_KEY_FALLBACKS",
    "this node is stopping": "wait for its end, or start it again",
    "on call: ": "each of them adds a contact method under Settings, Notifications",
    "telemetry: ": "run `manage.py move_telemetry`, which says why (docs: operate/cold-telemetry)",
    "old log: ": "run `manage.py move_log`, which says why (docs: operate/cold-log)",
    "files: DOSSIER_LOG_HOT": "set DOSSIER_TELEMETRY_COLD to a directory that all machines share, or to a bucket",
    "files: ": "mount or restore that directory on this machine, or correct DOSSIER_TELEMETRY_COLD",
    "sharding: tables": "stop Dossier, run `manage.py shard_telemetry`, start it again (docs: operate/sharding)",
    "sharding: max": "raise it on every node to max_connections and restart Postgres",
    "sharding: DOSSIER": "set it to 1d on all machines and restart Dossier",
    "sharding: ": "create the extension citus on every node, then run `manage.py shard_telemetry`",
    "log: parts": "end sessions that read log_event for hours (pg_stat_activity); the next sweep drops them",
    "log: ": "start `manage.py up` or `manage.py run worker` somewhere; see worker.log",
    "retention: ": "start a worker; end sessions that read that table for hours (pg_stat_activity)",
    "integration ": "correct or replace the key at the sender (Settings, Integrations has its last refusals)",
    "webhook ": "correct its receiver, then replay what was given up (Settings, Webhooks)",
    "rebuild: ": "run `manage.py rebuild_projections`, which continues it (docs: operate/backup)",
    "analyzers": "install the package of the analyzer, or switch its schedule off",
}
"""By the beginning of a line."""

NEWEST_NEEDED = 140000
MOST_USED = 0.85
_SERVER = """
SELECT current_setting('server_version_num')::int, current_setting('fsync'), current_setting('full_page_writes'),
       current_setting('synchronous_commit'), current_setting('max_connections')::int,
       (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend')
"""


def cure(line: str) -> str | None:
    """Remedy for a line, where one is known to help."""
    return next((cure for start, cure in CURES.items() if line.startswith(start)), None)


def server() -> list[str]:
    """Settings of Postgres under which what was acknowledged may be lost, or connections run out."""
    with connection.cursor() as cursor:
        cursor.execute(_SERVER)
        version, *durable, most, used = cursor.fetchone()
    settings = dict(zip(("fsync", "full_page_writes", "synchronous_commit"), durable, strict=True))
    found = [
        f"database: {name} is off; acknowledged alerts may be lost"
        for name, on in settings.items()
        if on == "off"
    ]
    if version < NEWEST_NEEDED:
        found.append(f"database: version {version // 10000}; 14 is the oldest that is supported")
    if used > most * MOST_USED:
        found.append(f"database: connections: {used} of {most} are in use")
    return found


def files() -> list[str]:
    """Old telemetry and old parts of the log that this machine cannot read, or that cannot move."""
    found = []
    if settings.LOG_HOT and not settings.TELEMETRY_COLD:
        found.append("files: DOSSIER_LOG_HOT is set without DOSSIER_TELEMETRY_COLD; no part of the log moves")
    if staying := cold_log().staying:
        found.append(f"log: parts in files that stay in Postgres for more than an hour: {staying}")
    return found + [f"files: {why}" for why in (unreadable_log(), unreadable_telemetry()) if why]


def sharding() -> list[str]:
    """Telemetry on several nodes of Citus."""
    return [f"sharding: {one}" for one in sharding_problems()]
