"""Probes between servers that were simulated are written, read back and judged, with commands alone."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.acceptance.commands import printed


def judged(out: Path, *kinds: str) -> dict[str, Any]:
    inputs = [f"--input={kind}={out / f'{kind}.ndjson'}" for kind in kinds]
    verdict: dict[str, Any] = json.loads(printed("analyze", "pingmesh", *inputs, "--json"))
    return verdict


@pytest.mark.parametrize(
    ("scenario", "pattern"),
    [
        ("pingmesh_podset", "podset_failure"),
        ("pingmesh_spine", "spine"),
        ("pingmesh_black_hole", "none"),
        ("pingmesh_healthy", "none"),
    ],
)
def test_the_simulated_fault_is_named_and_nothing_else(scenario: str, pattern: str, tmp_path: Path) -> None:
    printed("simulate", scenario, "--seed", "5", "--out", str(tmp_path))
    truth = json.loads((tmp_path / "truth.json").read_text())
    verdict = judged(tmp_path, "probe", "topology")
    assert [one["component"] for one in verdict["suspects"]] == [one["component"] for one in truth["faults"]]
    assert verdict["measures"]["pattern"] == pattern


def test_what_is_read_from_rows_is_what_they_say(tmp_path: Path) -> None:
    printed("simulate", "pingmesh_tor", "--seed", "6", "--out", str(tmp_path))
    rows = [json.loads(line) for line in (tmp_path / "probe.ndjson").read_text().splitlines()]
    times = [time for row in rows for time in row["rtt_us"]]
    dropped = sum(2.5e6 <= time < 4.5e6 or 8.5e6 <= time < 10.5e6 for time in times)
    measures = judged(tmp_path, "probe")["measures"]
    assert measures["probes"] == sum(row["sent"] for row in rows)
    assert measures["lost"] == sum(row["lost"] for row in rows)
    assert measures["drop_rate"] == pytest.approx(dropped / len(times))
    assert measures["p99_us"] == pytest.approx(sorted(times)[int(0.99 * len(times))], rel=0.06)
