"""The demo's plan of what is sent when, and what it keeps."""

import stat
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO
from pathlib import Path

import msgspec
import pytest

from analyzers.builtin.deepview import ANALYZER
from analyzers.offline import choose_input, windows
from analyzers.runner import judge
from deploy.demo.notes import Notes
from deploy.demo.screen import Screen
from deploy.demo.world import MINUTE, Batch, Demo
from ingest.telemetry.windows.offline import read_file

pytestmark = pytest.mark.simulated

START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def demo() -> Demo:
    return Demo(START)


@pytest.fixture(scope="module")
def told(demo: Demo) -> list[Batch]:
    """All that is sent while the stories last, but the training job, which has `test_demo_training_job`."""
    return [batch for n in range(demo.minutes) for batch in demo.region_minute(n)]


def test_every_failure_of_the_world_is_sent_once(demo: Demo, told: list[Batch]) -> None:
    sent = [row for batch in told if batch.kind == "unit_failure" for row in batch.rows]
    assert sent == demo.world.failures


def test_no_row_is_sent_before_it_has_happened(told: list[Batch]) -> None:
    for batch in told[::7]:
        assert all(datetime.fromisoformat(row["time"]) < batch.until for row in batch.rows)


def test_data_time_passes_in_every_minute(demo: Demo) -> None:
    for n in (0, 100, 10_000):
        last = max(datetime.fromisoformat(row["time"]) for batch in demo.minute(n) for row in batch.rows)
        assert timedelta(0) < START + (n + 1) * MINUTE - last < timedelta(seconds=1)


def test_the_same_minute_is_the_same_batch_after_a_restart(demo: Demo) -> None:
    again = Demo(START)
    assert [again.minute(n) for n in (65, 200, 5_000)] == [demo.minute(n) for n in (65, 200, 5_000)]


def test_batches_have_names_of_their_own(demo: Demo, told: list[Batch]) -> None:
    names = [batch.name for batch in (*demo.inventory(), *told, *demo.minute(demo.minutes))]
    assert len(set(names)) == len(names)


def test_healthy_background_goes_on_after_the_stories(demo: Demo) -> None:
    rows = [
        row for n in range(300, 600) for b in demo.minute(n) if b.kind == "unit_failure" for row in b.rows
    ]
    assert 10 < len(rows) < 500


def test_notes_are_kept_for_the_owner_alone(tmp_path: Path) -> None:
    notes = Notes(tmp_path / "demo.json", "demo", "secret", "key", START, 17)
    notes.save()
    assert Notes.load(notes.path) == notes
    assert stat.S_IMODE(notes.path.stat().st_mode) == 0o600


def test_a_pipe_gets_a_line_for_each_quarter() -> None:
    out = StringIO()
    screen = Screen(out)
    for done in range(101):
        screen.progress("World", done, 100)
    assert [line.split("]")[1].strip() for line in out.getvalue().splitlines()] == [
        "0%",
        "25%",
        "50%",
        "75%",
        "100%",
    ]


def test_the_fault_that_lasts_a_day_goes_on_after_the_stories_and_ends(demo: Demo) -> None:
    (fault,) = demo.world.lasting
    on_it = {row["unit"] for row in demo.world.placement if fault.component in row["components"]}

    def failed(hour: int) -> int:
        minutes = range(60 * hour, 60 * hour + 60)
        batches = [b for n in minutes for b in demo.minute(n) if b.kind == "unit_failure"]
        return sum(row["unit"] in on_it for b in batches for row in b.rows)

    assert min(failed(hour) for hour in (6, 15, 24)) > 3 * max(failed(hour) for hour in (27, 30, 33))


def test_the_fault_that_lasts_a_day_is_named_after_a_history_that_is_not_calm(demo: Demo) -> None:
    (fault,) = demo.world.lasting
    rows = {"placement": list(demo.world.placement), "unit_failure": []}
    for batch in (batch for n in range(14 * 60) for batch in demo.region_minute(n)):
        if batch.kind == "unit_failure":
            rows["unit_failure"] += batch.rows
    tables = {
        kind: read_file(kind, "-", BytesIO(b"".join(msgspec.json.encode(row) + b"\n" for row in each)))
        for kind, each in rows.items()
    }
    hours = list(windows(ANALYZER, choose_input(ANALYZER, tables), tables, timedelta(hours=1)))
    verdict = judge(ANALYZER, hours[-1], {})
    history = next(one["detail"] for one in verdict["assumptions"] if one["name"] == "history")
    assert {one["component"] for one in verdict["suspects"]} == {fault.component}
    assert "stood out in 12 of 12 windows" in history
