"""A real job of four processes over gloo, with a sleep in one of them; skipped where torch is not installed.

Rows of the hook know durations; dumps of the flight recorder of gloo only launches, which is enough for a hang.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command

from analyzers import offline
from analyzers.builtin.c4d import ANALYZER
from analyzers.runner import judge
from tests.acceptance.gloo_job import CULPRIT, RANKS
from tests.places import ROOT

PYTHON = os.environ.get("TORCH_PYTHON") or (sys.executable if importlib.util.find_spec("torch") else "")
"""A Python that has torch: this one, or the one that the variable names."""

pytestmark = pytest.mark.skipif(
    not PYTHON,
    reason="torch is not installed: run tests/acceptance/install_torch.sh and set TORCH_PYTHON as it prints",
)


@pytest.fixture(scope="module", params=["slow", "hang"])
def fault(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture(scope="module")
def recorded(fault: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp(fault)
    command = [PYTHON, "-m", "tests.acceptance.gloo_job", str(out), fault]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    return out


def suspects(path: Path, hang_seconds: float) -> list[tuple[str, str]]:
    tables = offline.read([f"collective={path}"], BytesIO())
    (window,) = offline.windows(ANALYZER, ANALYZER.inputs[0], tables, None)
    found: list[dict[str, Any]] = judge(ANALYZER, window, {"hang_seconds": hang_seconds})["suspects"]
    return [(one["component"], one["indicator"]) for one in found]


def test_the_rank_that_sleeps_is_named(fault: str, recorded: Path) -> None:
    path = recorded / "collective.ndjson"
    path.write_text("".join((recorded / f"rank-{rank}.ndjson").read_text() for rank in range(RANKS)))
    indicator = {"slow": "late arrival", "hang": "operation not launched"}[fault]
    assert suspects(path, 2.0) == [(f"rank/{CULPRIT}", indicator)]


def test_dumps_of_the_flight_recorder_name_a_rank_that_hangs_and_nobody_else(
    fault: str, recorded: Path
) -> None:
    dumps, path = [str(recorded / f"rank-{rank}.json") for rank in range(RANKS)], recorded / "dumped.ndjson"
    call_command("convert", "flight-recorder", *dumps, "--job", "gloo", "--out", str(path))
    hangs = [(f"rank/{CULPRIT}", "operation not launched")]
    assert suspects(path, 0.0) == (hangs if fault == "hang" else [])
