"""Dossier's backend, where one database goes by another name in each test, and a session may outlive its test."""

from __future__ import annotations

from typing import Any, Final

from deploy.postgres import base

DATABASES: Final[dict[str, str]] = {}
"""By the name in Django's settings: the database that it leads to."""

SESSIONS: Final[dict[str, Any]] = {}
"""By database: an open session that nobody uses."""


class DatabaseWrapper(base.DatabaseWrapper):
    def get_connection_params(self) -> dict[str, Any]:
        parameters = super().get_connection_params()
        return parameters | {"dbname": DATABASES.get(parameters["dbname"], parameters["dbname"])}

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        return SESSIONS.pop(conn_params["dbname"], None) or super().get_new_connection(conn_params)
