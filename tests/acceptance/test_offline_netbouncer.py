"""Probes that were simulated are written, read back and judged, with commands alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.places import ROOT


def manage(*arguments: str) -> str:
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, str(ROOT / "manage.py"), *arguments]
    done = subprocess.run(command, capture_output=True, env=environment, timeout=120, check=True, text=True)
    return done.stdout


@pytest.mark.parametrize("scenario", ["netbouncer_links", "netbouncer_healthy"])
def test_the_simulated_links_are_named_and_no_others(scenario: str, tmp_path: Path) -> None:
    manage("simulate", scenario, "--seed", "5", "--out", str(tmp_path))
    truth = json.loads((tmp_path / "truth.json").read_text())
    verdict = json.loads(
        manage("analyze", "netbouncer", f"--input=probe={tmp_path / 'probe.ndjson'}", "--json")
    )
    found = {one["component"] for one in verdict["suspects"]}
    assert found == {fault["component"] for fault in truth["faults"]}
