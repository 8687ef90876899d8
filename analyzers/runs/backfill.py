"""Runs of the past, recorded with their own times: telemetry that no door takes any more, judged as if it had been.

Such a run is one by hand that reports nothing: whoever records it says which incidents its findings belong to.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from typing import Any

from analyzers import registry, runner
from analyzers.contract import Window
from analyzers.runs import events
from analyzers.runs.execution import Judged, record_judged
from analyzers.runs.models import Run, State
from analyzers.runs.window_reader import Reading
from analyzers.runs.window_store import keep_window
from ingest.queries import watermark


@dataclass(frozen=True, slots=True)
class PastRun:
    """A recorded run, and the bodies of the findings that it would have reported, best first."""

    id: str
    version: str
    findings: list[dict[str, Any]]


def record_past_run(
    name: str,
    kind: str,
    rows: Iterable[Mapping[str, Any]],
    start: datetime,
    end: datetime,
    region: str,
    actor: str,
) -> PastRun:
    """Judge rows of one kind as the window [start, end), as it would have been just after its end."""
    from analyzers.offline import choose_input  # reads files, too: loads pyarrow
    from ingest.telemetry.windows.offline import read_file, reduce

    analyzer = registry.get(name)
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    tables = {kind: read_file(kind, "-", BytesIO(lines.encode()))}
    chosen = choose_input(analyzer, tables)
    window = Window(start, end, region, chosen.name, reduce(chosen, tables, start, end))
    verdict = runner.judge(analyzer, window)
    reading = Reading(window, keep_window(window.sums), (), str(watermark()))
    run = Run.objects.create(
        requested_by=actor,
        analyzer=name,
        region=region,
        window_start=start,
        window_end=end,
        report=False,
        state=State.RUNNING,
        claim=uuid.uuid4(),
        created_at=end,
    )
    record_judged(run, Judged(reading, verdict, runner.verdict_json(verdict)), end)
    return PastRun(str(run.id), verdict["version"], events.findings(run, verdict, reading.hash))
