"""Being asked to tell somebody, once; the process that does it, and its signs of life."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
import uuid
from datetime import UTC, datetime, timedelta

import pytest
from django.db import transaction
from django.test import Client

from incidents.notifications.models import Notification
from incidents.notifications.queue import notify
from incidents.worker import sweeps
from incidents.worker.models import Heartbeat
from incidents.worker.parts import alive, silences
from incidents.worker.sweeps import run_sweeps, sweep_once
from ingest.queries import Context
from tests.places import ROOT

NOW = datetime(2026, 11, 21, 12, 0, tzinfo=UTC)
PATIENCE = 90.0


def call(key: str = "page-1", when: datetime = NOW) -> None:
    context = Context("system:escalation", cause="incident/x@1")
    notify("alice", str(uuid.uuid4()), key, "you are on call", True, context, when)


@pytest.mark.django_db
def test_the_same_key_calls_once() -> None:
    call()
    call(when=NOW + timedelta(hours=1))
    assert list(Notification.objects.values_list("key", "made_at")) == [("page-1", NOW)]


def test_a_call_is_taken_back_with_what_the_caller_decided(log_database: str) -> None:
    del log_database
    with transaction.atomic():
        call()
        transaction.set_rollback(True)
    assert not Notification.objects.exists()


@pytest.mark.django_db
def test_a_sweep_that_raises_is_told_and_keeps_the_time_of_its_last_good_round() -> None:
    sweep_once("clocks", lambda _: 3, NOW)
    assert sweep_once("clocks", lambda _: [][0], NOW + timedelta(minutes=1)) is None
    row = Heartbeat.objects.get(name="sweep clocks")
    assert (row.at, row.did, row.error) == (NOW, 3, "IndexError: list index out of range")


def test_a_sweep_that_raises_keeps_no_other_from_its_round(
    log_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    del log_database
    stop = threading.Event()

    def last(_: datetime) -> int:
        stop.set()
        return 0

    monkeypatch.setattr(sweeps, "_sweeps", {"broken": lambda _: [][0], "well": last})
    run_sweeps(stop, every=0.01)
    assert stop.is_set()


def test_a_name_is_given_to_one_sweep(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sweeps, "_sweeps", {})
    sweeps.register_sweep("clocks", len)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="clocks is registered twice"):
        sweeps.register_sweep("clocks", lambda _: 0)


@pytest.mark.django_db
def test_silence_of_a_part_is_warned_of(client: Client, broker: str) -> None:
    del broker
    alive("sweep clocks", datetime.now(UTC) - timedelta(minutes=2))
    told = client.get("/readyz").json()
    assert told["ready"]
    assert any(one.startswith("delivery: behind (sweep clocks 12") for one in told["warnings"])


def test_the_process_shows_life_and_ends_when_asked(log_database: str) -> None:
    command = [sys.executable, "manage.py", "run", "delivery"]
    environment = {**os.environ, "DATABASE_URL": log_database, "DJANGO_SETTINGS_MODULE": "deploy.settings"}
    environment["DOSSIER_SECRET_KEY"] = "tests"  # what this process sealed, that one opens
    environment["DOSSIER_ALLOW_ROOT"] = "true"
    with subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True) as process:
        deadline = time.monotonic() + PATIENCE
        while "sending" not in silences():
            assert time.monotonic() < deadline
            assert process.poll() is None
            time.sleep(0.1)
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0
