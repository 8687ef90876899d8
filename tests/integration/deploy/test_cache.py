"""Tries at a password are counted for all web processes together."""

from __future__ import annotations

import base64
import pickle
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache, caches
from django.core.management import call_command
from django.db import connection
from django.test import Client
from pytest_django import Settings

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


# Behind a proxy that is not counted
# ----------------------------------------------------------------------------------------------------------
def tries(password: str, name: str, times: int = 1, **headers: str) -> Any:
    for _ in range(times):
        answer = Client().post("/accounts/login/", {"login": name, "password": password}, **headers)  # type: ignore[arg-type]
    return answer


@pytest.fixture
def alice() -> None:
    cache.clear()
    User.objects.create_user("alice", password="correct horse")


@pytest.mark.usefixtures("alice")
def test_wrong_passwords_behind_an_uncounted_proxy_lock_their_sender_and_nobody_else() -> None:
    for n in range(6):
        tries("wrong", f"charlie{n}", 2, HTTP_X_FORWARDED_FOR="198.51.100.7")
    locked = tries("correct horse", "alice", HTTP_X_FORWARDED_FOR="198.51.100.7")
    assert locked.status_code != 302
    assert tries("correct horse", "alice", HTTP_X_FORWARDED_FOR="192.0.2.1").status_code == 302


@pytest.mark.usefixtures("alice")
def test_an_account_is_locked_whatever_the_header_says() -> None:
    for n in range(6):
        tries("wrong", "alice", HTTP_X_FORWARDED_FOR=f"192.0.2.{n}")
    assert tries("correct horse", "alice", HTTP_X_FORWARDED_FOR="192.0.2.99").status_code != 302


@pytest.mark.usefixtures("alice")
def test_a_public_address_changes_nothing_by_sending_the_header() -> None:
    for n in range(12):
        tries("wrong", f"charlie{n}", HTTP_X_FORWARDED_FOR=f"192.0.2.{n}", REMOTE_ADDR="8.8.8.8")
    answer = tries("correct horse", "alice", HTTP_X_FORWARDED_FOR="192.0.2.99", REMOTE_ADDR="8.8.8.8")
    assert answer.status_code != 302


@pytest.mark.usefixtures("alice")
def test_an_uncounted_proxy_is_told_to_staff_and_by_doctor(settings: Settings) -> None:
    User.objects.filter(username="alice").update(is_staff=True)
    staff = Client()
    staff.force_login(User.objects.get(username="alice"))
    assert "DOSSIER_TRUSTED_PROXY_COUNT" not in staff.get("/settings").content.decode()
    tries("wrong", "charlie", HTTP_X_FORWARDED_FOR="192.0.2.1")
    assert "DOSSIER_TRUSTED_PROXY_COUNT" in staff.get("/settings").content.decode()
    out = StringIO()
    with pytest.raises(SystemExit):
        call_command("doctor", stdout=out)
    assert "DOSSIER_TRUSTED_PROXY_COUNT" in out.getvalue()
    settings.ALLAUTH_TRUSTED_PROXY_COUNT = 1
    assert "DOSSIER_TRUSTED_PROXY_COUNT" not in staff.get("/settings").content.decode()
