"""Runs a benchmark that needs Django's settings in a process of its own, on a database that goes with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from deploy.embedded import Home, start_postgres, stop
from tests.places import ROOT

Row = dict[str, Any]


def rows_of(name: str, *sizes: int) -> list[Row]:
    """Rows that `python -m tests.benchmarks.NAME inside SIZES` writes last, as JSON."""
    home = Home(Path(os.environ.get("DOSSIER_HOME", ".dossier")).absolute() / "bench" / name)
    home.forget()
    server = start_postgres(home)
    environment = {**os.environ, "DATABASE_URL": home.database_url, "DOSSIER_HOME": str(home.root)}
    environment |= {"DJANGO_SETTINGS_MODULE": "deploy.settings", "DOSSIER_LOG_LEVEL": "ERROR"}
    environment |= {"DOSSIER_SECRET_KEY": "only for this benchmark", "DJANGO_ALLOW_ASYNC_UNSAFE": "true"}
    command = [sys.executable, "-m", f"tests.benchmarks.{name}", "inside", *map(str, sizes)]
    try:
        done = subprocess.run(
            command, env=environment, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True
        )
        rows: list[Row] = json.loads(done.stdout.splitlines()[-1])
        return rows
    finally:
        stop(server)
        home.forget()
