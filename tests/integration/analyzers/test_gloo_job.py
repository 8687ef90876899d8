"""A real job of four processes over gloo, with a sleep in one of them; skipped where torch is not installed."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from io import BytesIO
from pathlib import Path

import pytest

from analyzers import offline
from analyzers.builtin.c4d import ANALYZER
from analyzers.runner import judge
from tests.integration.analyzers.gloo_job import CULPRIT, RANKS
from tests.places import ROOT

PYTHON = os.environ.get("TORCH_PYTHON") or (sys.executable if importlib.util.find_spec("torch") else "")
"""A Python that has torch: this one, or the one that the variable names."""

pytestmark = pytest.mark.skipif(
    not PYTHON,
    reason="torch is not installed: run tests/integration/analyzers/install_torch.sh and set TORCH_PYTHON as it prints",
)


@pytest.mark.parametrize(
    ("fault", "indicator"), [("slow", "late arrival"), ("hang", "operation not launched")]
)
def test_the_rank_that_sleeps_is_named(fault: str, indicator: str, tmp_path: Path) -> None:
    command = [PYTHON, "-m", "tests.integration.analyzers.gloo_job", str(tmp_path), fault]
    subprocess.run(command, cwd=ROOT, check=True, timeout=120)
    recorded = "".join((tmp_path / f"rank-{rank}.ndjson").read_text() for rank in range(RANKS))
    path = tmp_path / "collective.ndjson"
    path.write_text(recorded)
    tables = offline.read([f"collective={path}"], BytesIO())
    (window,) = offline.windows(ANALYZER, ANALYZER.inputs[0], tables, None)
    (suspect,) = judge(ANALYZER, window, {"hang_seconds": 2.0})["suspects"]
    assert (suspect["component"], suspect["indicator"]) == (f"rank/{CULPRIT}", indicator)
