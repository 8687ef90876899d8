"""Imports of a process that takes alerts, before it serves."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.places import ROOT

NOT_AT_START = [
    *("altair", "apprise", "grpc", "icalendar", "matplotlib", "mcp", "pandas", "pyarrow", "pydantic"),
    "recurring_ical_events",
    *("scipy.optimize", "scipy.special", "scipy.stats", "sklearn", "vl_convert"),
]
PROGRAM = f"import sys, deploy.web; print([name for name in {NOT_AT_START} if name in sys.modules])"


def test_a_web_process_starts_without_what_few_requests_need() -> None:
    environment = {**os.environ, "DJANGO_SETTINGS_MODULE": "deploy.settings"}
    command = [sys.executable, "-W", "ignore", "-c", PROGRAM]
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120, check=True
    )
    assert done.stdout.strip() == "[]"
