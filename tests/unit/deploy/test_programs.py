"""Imports before processes are forked."""

from __future__ import annotations

import subprocess
import sys

from deploy.supervisor.programs import COLD

READERS = ("ingest.log.cold", "ingest.telemetry.cold.read", "ingest.telemetry.cold.move")
LATER = f"""
import sys
from importlib import import_module
import django
django.setup()
import_module("deploy.celery")
for name in {COLD}:
    import_module(name)
known = set(sys.modules)
for name in {READERS}:
    import_module(name)
print(sys.modules["pyarrow"].default_memory_pool().backend_name)
print(*(name for name in sys.modules.keys() - known if name.startswith(("pyarrow", "duckdb"))))
"""


def test_a_process_that_reads_files_imports_no_library_that_was_not_there_before_its_fork() -> None:
    done = subprocess.run([sys.executable, "-c", LATER], capture_output=True, text=True, check=True)
    allocator, later = done.stdout.splitlines()
    assert allocator == "system"  # which gives memory back
    assert later == ""
