"""Charts of a report: as Vega-Lite for pages, as PNG for mail.

The renderer brings a JavaScript engine whose memory would stay with a worker, so it runs in a child process.
"""

from __future__ import annotations

import base64
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any
from zoneinfo import ZoneInfo

Json = dict[str, Any]
PATIENCE = 60  # seconds
MOST = 8
"""Charts in one mail."""
_PROGRAM = """
import base64, json, sys, vl_convert
specs = json.load(sys.stdin)
pictures = [vl_convert.vegalite_to_png(json.dumps(spec), scale=2) for spec in specs]
json.dump([base64.b64encode(one).decode() for one in pictures], sys.stdout)
"""
_SEVERITIES = ("critical", "error", "warning", "info")
_COLOURS = ("#b3261e", "#c2620f", "#8a6a00", "#2c55c4")


class ChartRenderError(RuntimeError):
    """The charts could not be drawn; the mail goes without them."""


def charts(body: Json) -> list[Json]:
    """The charts of a report as pieces of evidence: `{kind: "chart", title, chart, text}`."""
    found = [incidents_chart(body)] if body["incidents"]["opened"] else []
    for one in body["analyses"]:
        found += [piece for piece in one["evidence"] if piece["kind"] == "chart"]
    return found


def incidents_chart(body: Json) -> Json:
    """Incidents opened, by day and severity (by hour in a daily report), in the report's time zone."""
    zone = ZoneInfo(body["period"]["zone"])
    daily = body["period"]["cadence"] == "daily"
    counts: dict[tuple[str, str], int] = {}
    for one in body["incidents"]["opened"]:
        at = datetime.fromisoformat(one["opened_at"]).astimezone(zone)
        key = f"{at:%H}:00" if daily else f"{at:%Y-%m-%d}"
        counts[key, one["severity"]] = counts.get((key, one["severity"]), 0) + 1
    values = [
        {"when": when, "severity": severity, "incidents": n} for (when, severity), n in sorted(counts.items())
    ]
    chart = {
        "height": 140,
        "width": 560,
        "data": {"values": values},
        "mark": {"type": "bar", "tooltip": {"content": "data"}},
        "encoding": {
            "x": {
                "field": "when",
                "type": "ordinal",
                "title": f"hour ({zone})" if daily else f"day ({zone})",
                "scale": {"domain": _steps(body, zone, daily)},
                "axis": {"labelAngle": 0, "labelOverlap": True},
            },
            "y": {
                "field": "incidents",
                "type": "quantitative",
                "title": "incidents opened",
                "axis": {"values": _whole(counts), "format": "d"},
            },
            "color": {
                "field": "severity",
                "type": "nominal",
                "title": "severity",
                "scale": {"domain": list(_SEVERITIES), "range": list(_COLOURS)},
            },
        },
    }
    return {"kind": "chart", "title": "Incidents opened", "chart": chart, "text": ""}


def _whole(counts: Mapping[tuple[str, str], int]) -> list[int]:
    """Whole numbers up to the tallest bar, a few of them: half an incident is none."""
    bars: dict[str, int] = {}
    for (when, _), count in counts.items():
        bars[when] = bars.get(when, 0) + count
    step = max(1, -(-max(bars.values(), default=1) // 5))
    return list(range(0, max(bars.values(), default=1) + step, step))


def _steps(body: Json, zone: ZoneInfo, daily: bool) -> list[str]:
    if daily:
        return [f"{hour:02}:00" for hour in range(24)]
    start, end = (
        datetime.fromisoformat(body["period"][name]).astimezone(zone).date() for name in ("start", "end")
    )
    return [str(start + timedelta(days=n)) for n in range((end - start).days)]


def drawn(specs: Sequence[Json]) -> list[bytes]:
    """Vega-Lite specifications as PNG. Raises ChartRenderError."""
    if not specs:
        return []
    try:
        made = subprocess.run(
            [sys.executable, "-c", _PROGRAM],
            input=json.dumps([_sized(spec) for spec in specs[:MOST]]).encode(),
            capture_output=True,
            timeout=PATIENCE,
            check=True,
        )
    except (subprocess.SubprocessError, OSError) as error:
        raise ChartRenderError(f"the charts could not be drawn: {error}") from error
    return [base64.b64decode(one) for one in json.loads(made.stdout)]


def _sized(spec: Json) -> Json:
    """A page gives a chart its width; a picture needs one of its own."""
    return (
        {**spec, "width": 560}
        if spec.get("width", "container") == "container" and "hconcat" not in spec
        else spec
    )
