"""Whatever scenario Alice writes, `truth.json` says in one form what was planted, and where in time."""

import json
from datetime import datetime, timedelta
from pathlib import Path

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


def _begins_in(path: Path, truth: dict[str, str]) -> bool:
    """Whether the first row lies in the scenario's span; a state may be told at its start or before."""
    with path.open() as lines:
        row = json.loads(next(lines))
    first = datetime.fromisoformat(row["time"] if "time" in row else row["start"])
    start, end = (datetime.fromisoformat(truth[edge]) for edge in ("start", "end"))
    return start - timedelta(days=1) <= first < end
