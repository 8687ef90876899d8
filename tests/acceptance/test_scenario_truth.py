"""Whatever scenario Alice writes, `truth.json` says in one form what was planted, and where in time."""

import json
from datetime import datetime, timedelta
from functools import cache
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from analyzers.simulators.scenarios import SCENARIOS
from analyzers.simulators.truth import check_truth
from ingest.telemetry.kinds import KINDS


@pytest.mark.parametrize("name", SCENARIOS)
def test_every_scenario_tells_its_truth_in_one_schema(name: str, tmp_path: Path) -> None:
    written = SCENARIOS[name].write(3, tmp_path)
    truth = json.loads((tmp_path / "truth.json").read_text())
    check_truth(truth)
    assert (truth["scenario"], truth["seed"]) == (name, 3)
    assert bool(truth["faults"]) == (not name.endswith("_healthy"))
    assert {path.name for path in written} - {"truth.json"} <= {f"{kind}.ndjson" for kind in KINDS}
    assert all(_begins_in(path, truth) for path in written if path.name != "truth.json")


@cache
def _usual_rows(name: str) -> tuple[bytes, ...]:
    """Digests of a scenario's files without an event."""
    with TemporaryDirectory() as out:
        SCENARIOS[name].write(3, Path(out))
        return _digests(Path(out))


def _digests(out: Path) -> tuple[bytes, ...]:
    return tuple(sha256(path.read_bytes()).digest() for path in sorted(out.glob("*.ndjson")))


@pytest.mark.parametrize(
    ("name", "event"), [(one.name, event) for one in SCENARIOS.values() for event in one.events]
)
def test_an_event_changes_the_rows_and_plants_no_fault(name: str, event: str, tmp_path: Path) -> None:
    SCENARIOS[name].write(3, tmp_path, event)
    truth = json.loads((tmp_path / "truth.json").read_text())
    assert (truth["faults"], [one["kind"] for one in truth["benign"]]) == ([], [event])
    assert _digests(tmp_path) != _usual_rows(name)


def _begins_in(path: Path, truth: dict[str, str]) -> bool:
    """Whether the first row lies in the scenario's span; a state may be told at its start or before."""
    with path.open() as lines:
        row = json.loads(next(lines))
    first = datetime.fromisoformat(row["time"] if "time" in row else row["start"])
    start, end = (datetime.fromisoformat(truth[edge]) for edge in ("start", "end"))
    return start - timedelta(days=1) <= first < end
