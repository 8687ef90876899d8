"""Django's Postgres backend with deadlines: sessions are named and limited by the process they belong to.

`DOSSIER_PROCESS` (set by the supervisor) says which that is. Commands that people run by hand have no limits.
"""

from __future__ import annotations

import os
from typing import Any, Final

import psycopg2
from django.db.backends.postgresql import base

from ingest.commands import SESSION_NAME
from ingest.queries import database_answers

VARIABLE: Final = "DOSSIER_PROCESS"
LIMITS: Final = {
    "web": ("30s", "10s"),
    "events": ("30s", "10s"),
    "mail": ("30s", "10s"),
    "otlp": ("30s", "10s"),
    "followers": ("2min", "30s"),
    "delivery": ("2min", "30s"),
    "scheduler": ("30s", "10s"),
    "worker": ("30min", "2min"),
}
"""By process: the longest statement, and the longest wait for a lock (statement_timeout, lock_timeout)."""

_SETTINGS = """
SELECT set_config('application_name', %s, false), set_config('statement_timeout', %s, false),
       set_config('lock_timeout', %s, false), set_config('tcp_keepalives_idle', '4', false),
       set_config('tcp_keepalives_interval', '2', false), set_config('tcp_keepalives_count', '2', false)
"""
_IDLE = """
SELECT set_config('idle_in_transaction_session_timeout', '60s', false)
 WHERE current_setting('idle_in_transaction_session_timeout') = '0'
"""


class DatabaseWrapper(base.DatabaseWrapper):
    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Raises OperationalError at once while the server is known to stand still, where libpq would wait for it."""
        if not database_answers():
            raise psycopg2.OperationalError("the server does not answer")
        return super().get_new_connection(conn_params)

    def init_connection_state(self) -> None:
        """Limits are asked for once connected, because PgBouncer takes no such options before.

        A transaction whose process stands still holds back every reader of the log. Where the server lets it do so for
        ever, it ends after a minute. Of a machine that vanished the server hears nothing, and keeps its locks, until
        keepalives go unanswered for eight seconds.
        """
        super().init_connection_state()
        with self.connection.cursor() as cursor:
            cursor.execute(_IDLE)
            process = os.environ.get(VARIABLE, "")
            if process in LIMITS:
                cursor.execute(_SETTINGS, (f"{SESSION_NAME} {process}", *LIMITS[process]))
        if not self.get_autocommit():
            self.connection.commit()
