"""A disk that fills up under a real database: a warning, no more telemetry, then 503 to all; and back."""

from __future__ import annotations

import os
import secrets
import subprocess
import uuid
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg2
import pytest
from django.db import connection, connections
from django.test import Client
from pytest_django import Settings
from pytest_django.plugin import DjangoDbBlocker

from deploy import privileges
from deploy.embedded import Home
from ingest.api import keys
from ingest.db import disk

MIB = 2**20
SIZE = 400 * MIB


class Disk:
    """A small file system with the tables of the test's database on it."""

    def __init__(self, path: Path) -> None:
        self.path, self.filler = path, path / "filler"

    def leave(self, free: int) -> None:
        """Fill it until so many bytes are free; 0: none at all."""
        disk._last.clear()
        self.filler.unlink(missing_ok=True)
        with self.filler.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, disk.measure(self.path).free - free)

    def empty(self) -> None:
        disk._last.clear()
        self.filler.unlink()


@pytest.fixture
def small_disk(
    home: Home,
    log_database: str,  # noqa: ARG001
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
    django_db_blocker: DjangoDbBlocker,
) -> Iterator[Disk]:
    if os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    place = home.root / f"disk-{uuid.uuid4().hex[:8]}"
    place.mkdir()
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={SIZE},mode=755", "dossier-test", str(place)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode:
        pytest.skip("no file system can be mounted here")
    try:
        tables, owner = place / "tables", home.postgres.stat()
        tables.mkdir()
        os.chown(tables, owner.st_uid, owner.st_gid)
        name, space = connection.get_connection_params()["dbname"], f"small_{uuid.uuid4().hex[:8]}"
        with django_db_blocker.unblock():
            connections.close_all()
        administer(home, f"CREATE TABLESPACE {space} LOCATION '{tables}'")
        administer(home, f'ALTER DATABASE "{name}" SET TABLESPACE {space}')
        settings.HOME = Home(place)
        monkeypatch.setattr(privileges, "is_root", lambda: False)
        yield Disk(place)
        with django_db_blocker.unblock():
            connections.close_all()
        administer(home, f'ALTER DATABASE "{name}" SET TABLESPACE pg_default')
        administer(home, f"DROP TABLESPACE {space}")
    finally:
        disk._last.clear()
        subprocess.run(["umount", str(place)], check=True)


def administer(home: Home, statement: str) -> None:
    server = psycopg2.connect(host=str(home.run), user="dossier", dbname="postgres")
    server.autocommit = True
    with server.cursor() as cursor:
        cursor.execute(statement)
    server.close()


class Sender:
    def __init__(self) -> None:
        secret = keys.create("fleet", ["telemetry", "alerts"])
        self.client = Client(raise_request_exception=False)
        self.headers, self.accepted = {"Authorization": f"Bearer {secret}"}, 0

    def post(self, path: str, body: object) -> tuple[int, str]:
        answer = self.client.post(path, body, content_type="application/json", headers=self.headers)
        return answer.status_code, answer.content.decode()

    def alert(self) -> tuple[int, str]:
        """A new one, of a page and more, that does not compress."""
        alert = {
            "labels": {"alertname": uuid.uuid4().hex},
            "annotations": {"trace": secrets.token_hex(10_000)},
        }
        status, text = self.post("/api/v2/alerts", [alert])
        self.accepted += status == 200
        return status, text

    def rows(self) -> tuple[int, str]:
        row = {"unit": "vm/1", "time": datetime.now(UTC).isoformat()}
        return self.post("/api/v1/telemetry/unit_failure", [row])

    def readiness(self) -> Any:
        return self.client.get("/readyz").json()


def test_telemetry_then_everything_is_refused_while_a_disk_fills_up(small_disk: Disk, broker: str) -> None:
    del broker
    sender = Sender()
    assert (sender.alert()[0], sender.rows()[0], sender.readiness()["warnings"]) == (200, 202, [])

    small_disk.leave(30 * MIB)
    assert (sender.alert()[0], sender.rows()[0]) == (200, 202)
    assert sender.readiness()["warnings"] == ["disk: 7.5% free (0.0 GiB); below 5% telemetry is refused"]

    small_disk.leave(18 * MIB)
    status, text = sender.rows()
    assert (status, "disk of Dossier is nearly full" in text) == (503, True)
    assert sender.alert()[0] == 200

    small_disk.leave(0)
    status, text = sender.alert()
    while status == 200:  # what is left of the tables' pages takes a few
        assert sender.accepted < 200
        status, text = sender.alert()
    assert (status, "The disk of the database is full" in text) == (503, True)
    assert "disk: full; nothing can be stored" in sender.readiness()["reasons"]

    small_disk.empty()
    assert (sender.alert()[0], sender.rows()[0], sender.readiness()["warnings"]) == (200, 202, [])
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log_event WHERE type = 'alert.reported'")
        assert cursor.fetchone() == (sender.accepted,)
