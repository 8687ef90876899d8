"""Tries at a password are counted for all web processes together."""

from __future__ import annotations

import base64
import pickle
from pathlib import Path

import pytest
from django.core.cache import cache, caches
from django.db import connection
from django.test import Client

from deploy.cache import JSONCache

pytestmark = pytest.mark.django_db


def test_what_one_process_counts_another_one_knows() -> None:
    assert isinstance(caches["default"], JSONCache)
    cache.clear()
    for _ in range(12):
        answer = Client().post("/accounts/login/", {"login": "alice", "password": "wrong"})
    told = answer.content.decode()
    assert "Too many" in told or answer.status_code == 429
    # As another process has it: nothing in memory but the address of the table.
    another = JSONCache("shared_limits", {"OPTIONS": {"MAX_ENTRIES": 100_000}})
    known = [key for key in _keys() if another.get(key)]
    assert known


def _keys() -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT cache_key FROM shared_limits")
        return [str(key).split(":", 2)[2] for (key,) in cursor.fetchall()]


class Marks:
    """Unpickled, it makes a file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[object, tuple[Path]]:
        return Path.touch, (self.path,)


def test_what_somebody_wrote_into_the_table_is_not_run(tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    planted = base64.b64encode(pickle.dumps(Marks(mark))).decode()
    cache.set("tries", 1, 60)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE shared_limits SET value = %s", [planted])
    assert cache.get("tries", "none") == "none"
    assert not mark.exists()


def test_a_value_is_kept_until_its_time_is_over() -> None:
    cache.set("a", {"tries": [1.5, 2.5]}, 60)
    assert cache.get("a") == {"tries": [1.5, 2.5]}
    assert not cache.add("a", 1, 60)
    cache.set("a", 2, -1)
    assert (cache.get("a"), "a" in cache, cache.touch("a")) == (None, False, False)
    assert cache.add("a", 3, None)
    assert cache.incr("a") == 4
    assert cache.touch("a", 60)
    assert (cache.delete("a"), cache.delete("a"), cache.get("a", "gone")) == (True, False, "gone")


def test_a_full_table_loses_what_ends_first() -> None:
    small = JSONCache("shared_limits", {"OPTIONS": {"MAX_ENTRIES": 4, "CULL_FREQUENCY": 2}})
    small.clear()
    for n in range(6):
        small.set(f"key{n}", n, 60 + n)
    assert small.get("key0") is None
    assert small.get("key5") == 5
