"""Tries at a password are counted for all web processes together."""

from __future__ import annotations

import pytest
from django.core.cache import cache, caches
from django.core.cache.backends.db import DatabaseCache
from django.test import Client

pytestmark = pytest.mark.django_db


def test_what_one_process_counts_another_one_knows() -> None:
    assert isinstance(caches["default"], DatabaseCache)
    cache.clear()
    for _ in range(12):
        answer = Client().post("/accounts/login/", {"login": "alice", "password": "wrong"})
    told = answer.content.decode()
    assert "Too many" in told or answer.status_code == 429
    # As another process has it: nothing in memory but the address of the table.
    another = DatabaseCache("shared_limits", {"OPTIONS": {"MAX_ENTRIES": 100_000}})
    known = [key for key in _keys() if another.get(key)]
    assert known


def _keys() -> list[str]:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT cache_key FROM shared_limits")
        return [str(key).split(":", 2)[2] for (key,) in cursor.fetchall()]
