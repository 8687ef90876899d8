"""Shared parts of the tests of runs: a small analyzer that is installed as a plugin, and telemetry for it."""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.test import Client

from analyzers.runs import execution
from analyzers.runs.models import Run, Schedule, State
from analyzers.runs.scheduler import catch_up
from ingest.api import keys

HOUR, MINUTE, SECOND = timedelta(hours=1), timedelta(minutes=1), timedelta(seconds=1)
NOW = datetime.now(UTC).replace(microsecond=0)
TOP = (NOW - 3 * HOUR).replace(minute=0, second=0)
"""An hour in the past from which telemetry of the tests begins."""

TALLY = """
    from analyzers.contract import *

    INPUT = Input("outcomes", (
        Reduction("by_set", kind="path_outcome", group_by=("components",),
                  aggregates={"attempts": Sum("attempts"), "failures": Sum("failures")}),
    ))
    UNITS = Input("units", (Reduction("units", kind="placement", group_by=("components",),
                                      aggregates={"units": Count()}),))

    def analyze(window, params):
        if params["crash"]:
            raise RuntimeError("as asked")
        found = []
        for table in window.sums.values():
            if "failures" not in table.values:
                continue
            for row in range(table.rows):
                share = table.values["failures"][row] / table.values["attempts"][row]
                if share >= params["share"]:
                    found.append(Suspect(table.keys["components"][row][0], None, "fails often", sure=True))
        measures = {"history": [len(w.sums["by_set"].values["failures"]) if "by_set" in w.sums else -1
                                for w in window.history]}
        evidence = (table_of(window),)
        return Verdict("named", tuple(found), None, measures, evidence) if found else quiet(measures)

    def table_of(window):
        return table("Sums", ("reduction", "rows"), tuple((n, t.rows) for n, t in window.sums.items()))

    ANALYZER = Analyzer("tally", "1.0.0", "Counts failures", (INPUT, UNITS),
                        (Param("share", 0.5, "least share of failures", low=0.0, high=1.0),
                         Param("crash", False, "raise an error")), analyze, history=2)
"""


def install_plugin(directory: Path, name: str, source: str) -> None:
    """Write a package as pip would leave it: a module and what announces its entry point."""
    (directory / f"{name}_plugin.py").write_text(textwrap.dedent(source))
    announced = directory / f"{name}_plugin-1.0.dist-info"
    announced.mkdir()
    (announced / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}-plugin\nVersion: 1.0\n")
    (announced / "entry_points.txt").write_text(f"[dossier.analyzers]\n{name} = {name}_plugin:ANALYZER\n")


def outcome(component: str, at: datetime, failures: int = 0, attempts: int = 10) -> dict[str, Any]:
    return {"time": at.isoformat(), "components": [component], "attempts": attempts, "failures": failures}


def healthy(start: datetime = TOP, length: timedelta = HOUR, **faults: int) -> list[dict[str, Any]]:
    """A row a minute for each of three components; `faults` are the failures of those named."""
    minutes = int(length / MINUTE)
    return [
        outcome(f"tor/{name}", start + minute * MINUTE, faults.get(name, 0))
        for minute in range(minutes)
        for name in ("a", "b", "c")
    ]


class Door:
    """Sends rows through the telemetry door, with followers at work and, unless kept, no schedule."""

    def __init__(self, name: str = "feeder", *, keep_schedules: bool = False) -> None:
        if not keep_schedules:
            Schedule.objects.all().delete()
        secret = keys.create(name, ["telemetry"])
        self.client = Client(headers={"Authorization": f"Bearer {secret}"})

    def post(self, rows: Iterable[Mapping[str, Any]], kind: str = "path_outcome") -> None:
        body = "".join(json.dumps(row) + "\n" for row in rows).encode()
        answer = self.client.post(f"/api/v1/telemetry/{kind}", body, content_type="application/x-ndjson")
        assert answer.status_code == 202, answer.content
        catch_up()


def hourly(**changes: Any) -> Schedule:
    """A schedule: an hour, every five minutes, on `tally`."""
    values = {"name": "hourly", "analyzer": "tally", "length": HOUR, "every": 5 * MINUTE, **changes}
    return Schedule.objects.create(**values)


def work() -> list[Run]:
    """Do every queued run, as a worker would; the runs, in the order of their windows."""
    queued = list(Run.objects.filter(state=State.QUEUED).values_list("pk", flat=True))
    for run in queued:
        execution.execute(run, lambda: datetime.now(UTC))
    return list(Run.objects.filter(pk__in=queued).order_by("window_end"))
