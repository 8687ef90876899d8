"""Old rows lie in files: windows over them have the same bytes, and no step that dies loses or doubles a row."""

from __future__ import annotations

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from hypothesis import HealthCheck, Phase, given
from hypothesis import settings as trials
from hypothesis import strategies as st
from pytest_django import Settings

from deploy.observability import cures, health
from ingest.db import database
from ingest.db.storage import ColdStorageError, storage
from ingest.log.read import watermark
from ingest.queries import read_window
from ingest.telemetry.cold import files, move
from ingest.telemetry.cold.move import Moved, move_old
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.store import tables
from ingest.telemetry.windows import path_sums as grid_sums
from ingest.telemetry.windows.late_rows import late_rows
from ingest.telemetry.windows.offline import reduce
from ingest.telemetry.windows.pair_grid import Steps
from ingest.telemetry.windows.part_rows import (
    benchmark_results,
    other_attempts,
    part_attempts,
    probed_paths,
)
from ingest.telemetry.windows.path_sums import path_sums
from ingest.telemetry.windows.sums import dumps
from tests.integration.ingest.locks import until_free
from tests.integration.ingest.telemetry.test_readers import (
    END,
    EVERYTHING,
    START,
    World,
    store,
    table,
    worlds,
)
from tests.places import ROOT

pytestmark = pytest.mark.usefixtures("cold")

LATER = datetime.now(UTC) + timedelta(hours=2)
"""Time at which nothing has come for a while; what is tested happened at START, whose retention is not over."""
HOT = timedelta(hours=1)
FAILURE = KINDS["unit_failure"]
regions_used = itertools.count()


@pytest.fixture
def cold(log_database: str, tmp_path: Path, settings: Settings) -> Path:  # noqa: ARG001
    settings.TELEMETRY_COLD = str(tmp_path / "cold")
    settings.TELEMETRY_RETENTION = timedelta(days=3650)
    return tmp_path / "cold"


def fail(count: int = 1, region: str = "default", at: datetime = START) -> None:
    row = {"time": at, "unit": "vm/1", "symptom": "disk"}
    store("unit_failure", [row] * count, region)


def counted(region: str = "default") -> int:
    sums = read_window(EVERYTHING, region, START, END)["symptoms"]
    return sums.unmatched


def states() -> list[tuple[str, bool]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT state, heap IS NOT NULL FROM telemetry_cold ORDER BY id")
        return list(cursor.fetchall())


def on_disk(cold: Path) -> list[Path]:
    return sorted(cold.rglob("*.parquet"))


@pytest.mark.usefixtures("a_partition_a_kind")
@trials(
    max_examples=3,
    deadline=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(world=worlds, cut=st.integers(0, 25))
def test_windows_have_the_same_bytes_over_postgres_files_and_both(world: World, cut: int) -> None:
    region = f"region {next(regions_used)}"
    for kind, rows in world.items():
        store(kind, rows[:cut], region)
    position = watermark()
    first = dumps(read_window(EVERYTHING, region, START, END))
    move_old(LATER, HOT)
    assert dumps(read_window(EVERYTHING, region, START, END)) == first
    for kind, rows in world.items():
        store(kind, rows[cut:], region)
    assert dumps(read_window(EVERYTHING, region, START, END, position)) == first
    tables = {kind: table(kind, rows, region) for kind, rows in world.items()}
    assert dumps(read_window(EVERYTHING, region, START, END)) == dumps(reduce(EVERYTHING, tables, START, END))


@pytest.fixture
def a_partition_a_kind(settings: Settings) -> None:
    """Each partition costs a move."""
    settings.TELEMETRY_PARTITION_INTERVAL = timedelta(days=1)


def test_a_partition_becomes_a_file_and_leaves_postgres(cold: Path) -> None:
    fail(7, at=START)
    fail(5, "elsewhere")
    before = counted(), counted("elsewhere")
    assert move_old(LATER, HOT) == Moved(files=1, rows=12, bytes=on_disk(cold)[0].stat().st_size)
    assert (states(), tables.existing(FAILURE)) == ([("cold", False)], [])
    assert (counted(), counted("elsewhere")) == before == (7, 5)


def test_nothing_moves_that_is_hot_or_still_arrives(cold: Path) -> None:
    fail()
    move_old(datetime.now(UTC), HOT)  # rows came a moment ago
    move_old(LATER, LATER - START)
    assert (states(), on_disk(cold)) == ([], [])


def test_an_age_of_minutes_waits_for_rows_for_no_longer() -> None:
    fail()
    soon = datetime.now(UTC) + timedelta(minutes=3)
    move_old(soon, HOT)
    assert states() == []
    move_old(soon, timedelta(minutes=2))
    assert states() == [("cold", False)]


def test_rows_that_come_late_become_a_second_file(cold: Path) -> None:
    fail(3)
    move_old(LATER, HOT)
    fail(2)
    assert counted() == 5
    move_old(LATER, HOT)
    assert (counted(), len(on_disk(cold)), tables.existing(FAILURE)) == (5, 2, [])


def test_late_rows_are_found_in_files_too() -> None:
    fail(3)
    position = watermark()
    fail(2)
    before = late_rows(["unit_failure"], "default", START, END, position)
    move_old(LATER, HOT)
    assert late_rows(["unit_failure"], "default", START, END, position) == before
    assert [late.rows for late in before] == [2]


STEPS = ("Writer", "copy_batches", "read_again", "_switch", "_drop_heap")


@pytest.mark.parametrize("step", STEPS)
def test_a_move_that_dies_at_any_step_is_finished_by_the_next(
    step: str, cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(7)

    def dies(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    owner: Any = files if hasattr(files, step) else move
    with monkeypatch.context() as patched:
        patched.setattr(owner, step, dies)
        with pytest.raises(KeyboardInterrupt):
            move_old(LATER, HOT)
        assert counted() == 7
    move_old(LATER, HOT)
    assert (counted(), states(), len(on_disk(cold))) == (7, [("cold", False)], 1)


KILLED = """
import os, signal, sys
import django
django.setup()
from datetime import datetime, timedelta
from ingest.telemetry.cold import files, move
def dies(*_): os.kill(os.getpid(), signal.SIGKILL)
files.read_again = dies
move.move_old(datetime.fromisoformat(sys.argv[1]), timedelta(hours=1))
"""


def test_a_process_killed_in_the_middle_of_a_move_leaves_all_rows(cold: Path, log_database: str) -> None:
    fail(7)
    environment = {
        **os.environ,
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "DATABASE_URL": log_database,
        "DOSSIER_HOME": str(cold.parent),
        "DOSSIER_TELEMETRY_COLD": str(cold),
        "DOSSIER_TELEMETRY_RETENTION": "3650d",
    }
    ended = subprocess.run(
        [sys.executable, "-c", KILLED, LATER.isoformat()], env=environment, cwd=ROOT, check=False
    )
    assert (ended.returncode, counted(), states()) == (-signal.SIGKILL, 7, [("writing", False)])
    until_free("telemetry_cold")
    move_old(LATER, HOT)
    assert (counted(), states(), len(on_disk(cold))) == (7, [("cold", False)], 1)


def test_rows_that_come_while_the_file_is_written_are_not_lost(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fail(3)
    read_again = files.read_again

    def slow(name: str) -> Any:
        fail(2)
        return read_again(name)

    with monkeypatch.context() as patched:
        patched.setattr(files, "read_again", slow)
        assert move_old(LATER, HOT).files == 0
    assert counted() == 5
    move_old(LATER, HOT)
    assert (counted(), states(), len(on_disk(cold))) == (5, [("cold", False)], 1)


def test_a_file_that_does_not_read_as_written_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    fail(3)
    read_again = files.read_again

    def changed(name: str) -> Any:
        digest, size = read_again(name)
        digest.bits ^= 1
        return digest, size

    monkeypatch.setattr(files, "read_again", changed)
    with pytest.raises(ColdStorageError, match="holds 3 rows, 3 were in"):
        move_old(LATER, HOT)
    assert counted() == 3


def test_retention_deletes_files(cold: Path, settings: Settings) -> None:
    fail(3)
    move_old(LATER, HOT)
    settings.TELEMETRY_RETENTION = LATER - END - timedelta(hours=1)
    move_old(LATER)
    assert (counted(), len(on_disk(cold))) == (0, 1)  # a reader may have it open
    assert move_old(LATER + timedelta(hours=1)).deleted == 1
    assert (states(), on_disk(cold)) == ([], [])


def test_a_file_that_is_gone_is_an_error_and_no_short_window(cold: Path) -> None:
    fail(3)
    move_old(LATER, HOT)
    on_disk(cold)[0].unlink()
    with pytest.raises(ColdStorageError, match="cannot be read"):
        counted()


def moved(*arguments: str) -> list[str]:
    out = StringIO()
    call_command("move_telemetry", *arguments, stdout=out)
    return out.getvalue().splitlines()


def test_the_command_moves_what_is_due_and_counts_it(cold: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fail(3)
    assert moved("--status") == ["In files: 0 rows in 0 files, 0 bytes"]
    monkeypatch.setattr(database, "now", lambda: LATER)
    done, now = moved("--older-than", "1")
    size = on_disk(cold)[0].stat().st_size
    assert done == f"3 rows moved into 1 files of {size:,} bytes; 0 files deleted after retention"
    assert now == f"In files: 3 rows in 1 files, {size:,} bytes"


@pytest.mark.parametrize("hours", ["0", "-1", "nan"])
def test_an_age_that_makes_no_sense_moves_nothing(hours: str) -> None:
    with pytest.raises(CommandError, match="is not a number of hours above 0"):
        moved("--older-than", hours)


def test_without_a_place_for_files_the_command_names_the_setting(settings: Settings) -> None:
    settings.TELEMETRY_COLD = ""
    with pytest.raises(CommandError, match="DOSSIER_TELEMETRY_COLD is not set"):
        moved()


def test_a_place_that_cannot_be_written_leaves_the_rows_where_they_are(
    cold: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    cold.parent.mkdir(exist_ok=True)
    cold.write_text("a file is in the way")
    fail(3)
    monkeypatch.setattr(database, "now", lambda: LATER)
    with pytest.raises(CommandError, match="rows that had not moved are still in Postgres"):
        moved("--older-than", "1")
    assert counted() == 3


def test_doctor_and_the_metrics_tell_of_rows_that_should_have_moved(settings: Settings) -> None:
    """Rows that should have moved 7 hours ago."""
    fail()
    ((_, until),) = tables.existing(FAILURE)
    settings.TELEMETRY_HOT = datetime.now(UTC) - datetime.fromtimestamp(until, UTC) - timedelta(hours=7)
    assert "telemetry: old rows should have moved into files 7 hours ago" in health.advice()
    answer = Client().get("/metrics").content.decode()
    overdue = re.search(r"^dossier_telemetry_cold_overdue_seconds (\S+)$", answer, re.MULTILINE)
    assert overdue is not None
    assert float(overdue[1]) == pytest.approx(7 * 3600, abs=60)
    move_old(LATER, HOT)
    assert not [line for line in health.advice() if line.startswith("telemetry:")]
    assert "dossier_telemetry_cold_rows 1.0" in Client().get("/metrics").content.decode()
    assert cures.files() == []
    for path in Path(settings.TELEMETRY_COLD).rglob("*.parquet"):
        path.unlink()
    (line,) = cures.files()
    assert line.startswith("files: unit_failure/")
    assert "cannot be read" in line


@pytest.fixture
def bucket(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    from moto.server import ThreadedMotoServer

    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, "test")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    yield f"endpoint_override={host}:{port}&scheme=http&region=us-east-1&allow_bucket_creation=true"
    server.stop()


def test_a_bucket_takes_files_like_a_directory(bucket: str, settings: Settings) -> None:
    settings.TELEMETRY_COLD = f"s3://telemetry/of/dossier?{bucket}"
    system, _ = storage()
    system.create_dir("telemetry")
    fail(7)
    before = dumps(read_window(EVERYTHING, "default", START, END))
    assert move_old(LATER, HOT).rows == 7
    fail(2)
    assert (counted(), states()) == (9, [("cold", False)])
    move_old(LATER, HOT)
    assert counted() == 9
    assert before
    settings.TELEMETRY_RETENTION = LATER - END - timedelta(hours=1)
    move_old(LATER)
    assert move_old(LATER + timedelta(hours=1)).deleted == 2


def test_reads_of_single_parts_and_of_the_grid_find_rows_in_files() -> None:
    common = {"time": START, "components": ["host/1", "tor/a"], "attempts": 9, "failures": 2, "weight": 1.0}
    store("path_outcome", [common, {**common, "components": ["host/2", "tor/a"]}], "default")
    fail(3)
    run = {
        "time": START,
        "node": "host/1",
        "benchmark": "gemm",
        "metric": "fp16",
        "values": [1.5, 2.0],
        "sku": "x",
    }
    store("benchmark", [run], "default")
    probe = {
        "time": START,
        "src": "host/1",
        "dst": "host/2",
        "sent": 3,
        "lost": 1,
        "rtt_us": [1.0],
        "hops": ["tor/a"],
    }
    store("probe", [probe, {**probe, "rtt_us": []}], "default")
    attempt = {"start": START - HOT, "end": START, "job": "j", "nodes": ["host/1"], "outcome": "failed"}
    store("job_attempt", [attempt], "default")

    def found() -> list[Any]:
        window = ("default", ["host/1"], START, END)
        grid = path_sums("default", "path_outcome", Steps(START, HOT, 1))
        return [
            part_attempts("path_outcome", *window),
            other_attempts("path_outcome", *window),
            part_attempts("job_attempt", *window),
            benchmark_results(*window),
            probed_paths(*window),
            sorted(grid.carried.tolist()),
            sorted(grid.failed.tolist()),
        ]

    before = found()
    assert all(before)
    move_old(LATER, HOT)
    assert [tables.existing(KINDS[kind]) for kind in ("path_outcome", "probe", "benchmark")] == [[], [], []]
    grid_sums._sums._held.clear()
    assert found() == before
