"""The list of benchmarks: each is there and can be begun."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.benchmarks.__main__ import NAMES
from tests.places import ROOT

BEGIN = """
import importlib, sys
for name in sys.argv[1:]:
    assert callable(importlib.import_module(f"tests.benchmarks.{name}").main), name
"""


def test_each_benchmark_loads_in_a_process_of_its_own_without_djangos_settings() -> None:
    environment = {name: value for name, value in os.environ.items() if name != "DJANGO_SETTINGS_MODULE"}
    command = [sys.executable, "-c", BEGIN, *NAMES]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
