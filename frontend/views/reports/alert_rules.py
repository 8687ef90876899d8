"""Alert rules: which were acted on, ignored or flapped, and what a change would have done last quarter."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Any, Final

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show
from frontend.views.reports.tables import Column, csv_address, csv_answer, sorted_rows
from incidents.domain.incident.flapping import FIRINGS
from incidents.domain.values import parse_rfc3339
from incidents.reports.alert_rules import DAYS, MOST_DAYS, alert_rules, rules_json
from incidents.reports.on_call_load import days_from

SPANS: Final = ((7, "7 days"), (28, "28 days"), (90, "90 days"))
COLUMNS: Final = (
    Column("rule", "Rule", number=False),
    Column("verdict", "Verdict", number=False),
    Column("firings", "Firings"),
    Column("incidents", "Incidents"),
    Column("calls", "Calls", hint="messages that reached a person"),
    Column("acted", "Acted on", hint="a person did more than acknowledge or snooze"),
    Column("ignored", "Ignored", hint="paged someone, and resolved automatically"),
    Column("false_alarms", "False alarms", hint="resolved by a person as a false alarm"),
    Column("flapped", "Flapped", hint=f"reopened by an alert, or an alert fired {FIRINGS} times"),
    Column("wasted_calls", "Wasted calls", hint="of incidents that were ignored or a false alarm"),
)
FIELDS: Final = (
    "rule",
    "integration",
    "verdict",
    "firings",
    "alerts",
    "incidents",
    "calls",
    "acknowledged",
    "acted",
    "ignored",
    "false_alarms",
    "uncalled",
    "open",
    "flapped",
    "wasted_calls",
)
EFFECT: Final = ("calls_before", "calls_after", "later", "minutes_later", "missed")
TONES: Final = {"useful": "on", "ignored": "named", "flapping": "named"}


@page
@require_safe
def rules(request: HttpRequest) -> HttpResponse:
    days, now = days_from(request.GET.dict(), DAYS, MOST_DAYS), timezone.now()
    found = rules_json(alert_rules(now - timedelta(days=days), now))
    rows, heads = sorted_rows(request, found["rules"], COLUMNS, "wasted_calls")
    if request.GET.get("format") == "csv":
        name = f"alert-rules-{days}-days"
        return csv_answer(name, (*FIELDS, "proposal", *EFFECT), _with_proposals(rows))
    context = {
        "found": found,
        "rows": [(row, TONES.get(row["verdict"], "")) for row in rows],
        "proposed": [(row, "\n".join(row["matchers"])) for row in rows if row["tried"]],
        "heads": heads,
        "days": days,
        "tried_days": (now - parse_rfc3339(found["since"])).days,
        "spans": SPANS,
        "csv": csv_address(request),
    }
    return show(request, "frontend/reports/alert_rules.html", context, section="reports")


def _with_proposals(rows: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Rows with the best change and its effect."""
    for row in rows:
        best = row["proposal"]
        effect = {} if best is None else {name: best[name] for name in EFFECT}
        yield {**row, "proposal": "" if best is None else best["sentence"], **effect}
