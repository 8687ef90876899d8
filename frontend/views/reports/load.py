"""On-call load: hours, nights and interruptions of people, and how evenly teams share them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.sparklines import Trend, weekly_trend
from frontend.views.pages import page, show
from frontend.views.reports.tables import Column, csv_address, csv_answer, sorted_rows
from incidents import queries
from incidents.reports.on_call_load import DAYS, MOST_DAYS, checked_team, days_from, load_json, on_call_load

SPANS: Final = ((7, "7 days"), (28, "28 days"), (90, "90 days"))
COLUMNS: Final = (
    Column("person", "Person", number=False),
    Column("team", "Team", number=False),
    Column("hours", "Hours"),
    Column("night_hours", "At night", hint="22:00 to 07:00 on the clock of the person"),
    Column("weekend_hours", "Weekend"),
    Column("interruptions", "Interruptions", hint="messages within 5 minutes are one"),
    Column("night_interruptions", "At night", hint="22:00 to 07:00 on the clock of the person"),
    Column("acknowledged", "Acknowledged"),
    Column("acknowledge_seconds", "To acknowledge", hint="median, from the first message to that person"),
    Column("ratio", "Share", hint="of the hours of the team; 1 × is an equal share"),
    Column("", "8 weeks", number=False),
)
FIELDS: Final = (
    "person",
    "team",
    "time_zone",
    "hours",
    "night_hours",
    "weekend_hours",
    "messages",
    "interruptions",
    "night_interruptions",
    "acknowledged",
    "acknowledge_seconds",
    "share",
    "ratio",
)


@page
@require_safe
def load(request: HttpRequest) -> HttpResponse:
    days, now = days_from(request.GET.dict(), DAYS, MOST_DAYS), timezone.now()
    team = checked_team(request.GET.get("team", "").replace("\0", ""))
    found = load_json(on_call_load(now - timedelta(days=days), now, team))
    rows, heads = sorted_rows(request, found["people"], COLUMNS, "hours")
    if request.GET.get("format") == "csv":
        return csv_answer(f"on-call-load-{days}-days", FIELDS, rows)
    context = {
        "load": found,
        "rows": [(row, _trend(row["weeks"])) for row in rows],
        "heads": heads,
        "days": days,
        "spans": SPANS,
        "team": team or "",
        "teams": queries.teams(),
        "team_names": {one.slug: one.name for one in queries.teams()},
        "csv": csv_address(request),
    }
    return show(request, "frontend/reports/on_call_load.html", context, section="reports")


def _trend(weeks: Sequence[Mapping[str, Any]]) -> Trend:
    return weekly_trend([week["hours"] for week in weeks], [week["interruptions"] for week in weeks])
