"""Probes that were simulated are written, read back and judged, with commands alone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.acceptance.commands import printed


@pytest.mark.parametrize("scenario", ["netbouncer_links", "netbouncer_healthy"])
def test_the_simulated_links_are_named_and_no_others(scenario: str, tmp_path: Path) -> None:
    printed("simulate", scenario, "--seed", "5", "--out", str(tmp_path))
    truth = json.loads((tmp_path / "truth.json").read_text())
    verdict = json.loads(
        printed("analyze", "netbouncer", f"--input=probe={tmp_path / 'probe.ndjson'}", "--json")
    )
    found = {one["component"] for one in verdict["suspects"]}
    assert found == {fault["component"] for fault in truth["faults"]}
