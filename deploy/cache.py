"""Django's cache in a table of Postgres, with values as JSON.

The database backend of Django unpickles what stands in its table: whoever can write that, or has a dump of theirs
restored, would run code in the web processes.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

from django.core.cache.backends.base import DEFAULT_TIMEOUT, BaseCache
from django.db import connection

FOREVER = datetime.max.replace(tzinfo=UTC)
KEY_LIMIT = 255
"""Characters of a key in the table."""


class JSONCache(BaseCache):
    """Values are what JSON can say; a tuple comes back as a list. A row that is no JSON counts as missing.

    LOCATION names the table, with the columns `cache_key`, `value` and `expires`.
    """

    def __init__(self, table: str, params: dict[str, Any]) -> None:
        super().__init__(params)
        self._table = connection.ops.quote_name(table)

    def get(self, key: str, default: Any = None, version: int | None = None) -> Any:
        rows = self._run(
            f"SELECT value FROM {self._table} WHERE cache_key = %s AND expires > now()",
            self._key(key, version),
        )
        try:
            return json.loads(rows[0][0]) if rows else default
        except ValueError:
            return default

    def set(
        self, key: str, value: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> None:
        self._cull()
        self._put(key, value, timeout, version, "TRUE")

    def add(
        self, key: str, value: Any, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None
    ) -> bool:
        self._cull()
        return self._put(key, value, timeout, version, "kept.expires <= now()")

    def touch(self, key: str, timeout: float | None = DEFAULT_TIMEOUT, version: int | None = None) -> bool:
        touched = (
            f"UPDATE {self._table} SET expires = %s WHERE cache_key = %s AND expires > now() RETURNING 1"
        )
        return bool(self._run(touched, self._expiry(timeout), self._key(key, version)))

    def delete(self, key: str, version: int | None = None) -> bool:
        gone = f"DELETE FROM {self._table} WHERE cache_key = %s RETURNING expires > now()"
        rows = self._run(gone, self._key(key, version))
        return bool(rows and rows[0][0])

    def has_key(self, key: str, version: int | None = None) -> bool:
        there = f"SELECT 1 FROM {self._table} WHERE cache_key = %s AND expires > now()"
        return bool(self._run(there, self._key(key, version)))

    def clear(self) -> None:
        self._run(f"DELETE FROM {self._table}")

    def _put(self, key: str, value: Any, timeout: float | None, version: int | None, where: str) -> bool:
        put = (
            f"INSERT INTO {self._table} AS kept (cache_key, value, expires) VALUES (%s, %s, %s)"
            " ON CONFLICT (cache_key) DO UPDATE SET value = excluded.value, expires = excluded.expires"
            f" WHERE {where} RETURNING 1"
        )
        return bool(self._run(put, self._key(key, version), json.dumps(value), self._expiry(timeout)))

    def _cull(self) -> None:
        """Leave room: without what is over, and where that is not enough, without what ends first."""
        if self._run(f"SELECT count(*) FROM {self._table}")[0][0] < self._max_entries:
            return
        self._run(f"DELETE FROM {self._table} WHERE expires <= now()")
        left: int = self._run(f"SELECT count(*) FROM {self._table}")[0][0]
        if left >= self._max_entries and self._cull_frequency:
            first = f"SELECT cache_key FROM {self._table} ORDER BY expires LIMIT %s"
            self._run(f"DELETE FROM {self._table} WHERE cache_key IN ({first})", left // self._cull_frequency)

    def _key(self, key: str, version: int | None) -> str:
        return self.make_and_validate_key(key, version)[:KEY_LIMIT]

    def _expiry(self, timeout: float | None) -> datetime:
        until = self.get_backend_timeout(timeout)
        return FOREVER if until is None else datetime.fromtimestamp(max(until, 0), UTC)

    def _run(self, statement: str, *values: Any) -> list[tuple[Any, ...]]:
        with connection.cursor() as cursor:
            cursor.execute(statement, values)
            return cursor.fetchall() if cursor.description else []
