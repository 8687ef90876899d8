"""The body of a report: computed from what is recorded up to one place in the log, so that any past period can be
made up, and comes out the same when it is made again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.conf import settings

from analyzers.queries import analyzers, judge_span, runs_with_window_ending
from incidents.domain.incident.nodes import can_be_mitigated
from incidents.domain.routing.rules import Subject, team_of
from incidents.domain.values import rfc3339
from incidents.incident.models import IncidentRow
from incidents.remediation.mitigation import advice
from incidents.reports.alert_rules import alert_rules, rules_json
from incidents.reports.changes import changes
from incidents.reports.incidents import ReportedIncident, incidents_of, listed, response
from incidents.reports.lemons import lemons_of
from incidents.reports.models import ProducedReport, ReportSchedule
from incidents.reports.on_call_load import load_json, on_call_load
from incidents.reports.periods import Period
from incidents.reports.runs import blamed, counted, outcome
from incidents.reports.validations import validations
from incidents.reviews.queries import due_actions
from incidents.scorecards.queries import cards_as_of
from incidents.teams.models import routing_table
from ingest.queries import Position, regions

Json = dict[str, Any]
RUNS, INCIDENTS, LEMONS = "runs", "incidents", "lemons"
ON_CALL, ALERT_RULES = "on-call load", "alert rules"
MOST_BLAMED = 100
MOST_ROWS = 15


def period_name(schedule: str, period: Period) -> str:
    """The id of a report: `weekly-2026-W46`."""
    return f"{schedule}-{period.name}"


def compose(
    schedule: ReportSchedule, period: Period, upto: Position, tell: Callable[[str], None] = lambda _step: None
) -> Json:
    """The report of a period, also of one that is not over yet, from what the log holds up to `upto`.

    `tell` is called with what comes next: one of `steps(schedule)`, in that order.
    """
    start, end = period.start, period.end
    tell(RUNS)
    runs = [
        run
        for run in runs_with_window_ending(start, end, upto)
        if outcome(run) and (not schedule.region or run.region == schedule.region)
    ]
    tell(INCIDENTS)
    incidents = incidents_of(schedule.region, schedule.team, start, end, upto)
    body = {
        "id": period_name(schedule.name, period),
        "schedule": schedule.name,
        "title": schedule.title,
        "period": _period(period),
        "scope": {"region": schedule.region or None, "team": schedule.team or None},
        "position": str(upto),
        "runs": counted(runs),
        "blamed": _owned(schedule.team, blamed(runs))[:MOST_BLAMED],
        "incidents": listed(incidents, start, end, upto),
        "response": response(incidents, start, end),
        "analyses": _analyses(schedule, start, end, upto, tell),
        "scorecards": [
            card.as_json() for card in cards_as_of((one.state for one in incidents), start, end).values()
        ],
        "changes": None,
        "validations": validations(schedule.team, start, end, upto),
        "lemons": _lemons(schedule, end, upto, tell),
        "mitigations": _mitigations(incidents, end),
        "review_actions": _review_actions(schedule, period, upto),
        "on_call": _on_call(schedule, start, end, upto, tell),
        "alert_rules": _alert_rules(schedule, start, end, upto, tell),
    }
    before = ProducedReport.objects.filter(pk=period_name(schedule.name, period.previous())).first()
    if before is not None:
        body["changes"] = {"since": before.id, "lines": changes(body, before.body)}
    return body


def _mitigations(incidents: Sequence[ReportedIncident], end: datetime) -> list[Json]:
    """The options for incidents of nodes and training jobs that were open at the end, the costliest to wait for first.
    Inputs are those of the incident and of settings."""
    lines: list[Json] = []
    for one in incidents:
        state = one.state
        if can_be_mitigated(state) and (state.resolved_at is None or state.resolved_at >= end):
            found = advice(state)
            lines.append(
                {
                    "number": state.number,
                    "title": state.title,
                    "component": state.component,
                    "url": one.link,
                    "recommended": found.best.name,
                    "gpu_hours": {
                        each.name: None if each.gpu_hours is None else round(each.gpu_hours, 1)
                        for each in found.options
                    },
                }
            )
    return sorted(lines, key=lambda line: (-line["gpu_hours"]["wait"], line["number"]))[:MOST_ROWS]


def _review_actions(schedule: ReportSchedule, period: Period, upto: Position) -> Json | None:
    """Actions of reviews that were due by the end of the period and not done; None without any. Team and region are
    those that the incident has now."""
    due = due_actions(period.last, upto)
    incidents = IncidentRow.objects.filter(number__in={number for number, _ in due})
    known = {row.number: row for row in incidents.only("number", "title", "team", "region")}
    lines = [
        {
            **one.as_json(),
            "number": number,
            "title": row.title,
            "url": f"{settings.PUBLIC_URL}/incidents/{number}/review",
        }
        for number, one in due
        if (row := known.get(number)) is not None
        and schedule.team in ("", row.team)
        and schedule.region in ("", row.region)
    ]
    return {"actions": lines[:MOST_ROWS], "of": len(lines)} if lines else None


def _lemons(
    schedule: ReportSchedule, end: datetime, upto: Position, tell: Callable[[str], None]
) -> list[Json]:
    """Lemon scores and repair rates of each region; none in a daily report, or in one of a single team."""
    if schedule.cadence == "daily" or schedule.team:
        return []
    tell(LEMONS)
    found = [lemons_of(region, end, upto) for region in _regions(schedule)]
    return [one for one in found if one["fleets"] or one["repairs"]]


def _on_call(
    schedule: ReportSchedule, start: datetime, end: datetime, upto: Position, tell: Callable[[str], None]
) -> Json | None:
    """The on-call load of the period; None in a daily report, and where no one was on call or called."""
    if schedule.cadence == "daily":
        return None
    tell(ON_CALL)
    found = load_json(on_call_load(start, end, schedule.team or None, upto))
    return found if found["people"] else None


def _alert_rules(
    schedule: ReportSchedule, start: datetime, end: datetime, upto: Position, tell: Callable[[str], None]
) -> Json | None:
    """The alert rules of the period, those with most wasted calls first; None in a daily report, in one of a single
    team or region, whose rules are everybody's, and where no alert fired."""
    if not _has_alert_rules(schedule):
        return None
    tell(ALERT_RULES)
    found = rules_json(alert_rules(start, end, upto))
    return (
        {**found, "rules": found["rules"][:MOST_ROWS], "of": len(found["rules"])} if found["rules"] else None
    )


def _has_alert_rules(schedule: ReportSchedule) -> bool:
    return schedule.cadence != "daily" and not schedule.team and not schedule.region


def _period(period: Period) -> Json:
    return {
        "cadence": period.cadence,
        "name": period.name,
        "words": period.words,
        "zone": period.zone,
        "start": rfc3339(period.start),
        "end": rfc3339(period.end),
    }


def _owned(team: str, lines: list[Json]) -> list[Json]:
    """Those whose component the routes give to the team ("" is any)."""
    if not team:
        return lines
    table = routing_table()
    return [line for line in lines if team_of(Subject(line["component"]), table).slug == team]


def steps(schedule: ReportSchedule) -> list[str]:
    """Steps of composing a report, in words."""
    lemons = [] if schedule.cadence == "daily" or schedule.team else [LEMONS]
    on_call = [] if schedule.cadence == "daily" else [ON_CALL]
    rules = [ALERT_RULES] if _has_alert_rules(schedule) else []
    judged = (f"{name} of {region}" for name, region in _to_judge(schedule))
    return [RUNS, INCIDENTS, *judged, *lemons, *on_call, *rules]


def _regions(schedule: ReportSchedule) -> tuple[str, ...]:
    return (schedule.region,) if schedule.region else tuple(regions())


def _to_judge(schedule: ReportSchedule) -> list[tuple[str, str]]:
    """Each analyzer of the schedule that is installed, with each region."""
    installed = analyzers()
    return [
        (requested["analyzer"], region)
        for requested in schedule.analyses
        if requested["analyzer"] in installed
        for region in _regions(schedule)
    ]


def _analyses(
    schedule: ReportSchedule, start: datetime, end: datetime, upto: Position, tell: Callable[[str], None]
) -> list[Json]:
    """Opinions of the schedule's analyzers on the whole period, region by region; nothing where they had no rows."""
    installed = analyzers()
    params = {requested["analyzer"]: requested.get("params") or {} for requested in schedule.analyses}
    found = []
    for name, region in _to_judge(schedule):
        tell(f"{name} of {region}")
        judged = judge_span(installed[name], params[name], region, start, end, upto)
        if judged is not None:
            found.append(_analysis(schedule.team, region, installed[name].title, judged))
    return found


def _analysis(team: str, region: str, title: str, judged: Mapping[str, Any]) -> Json:
    if judged.get("error") is not None:
        return {
            "analyzer": judged["analyzer"],
            "version": judged["version"],
            "title": title,
            "region": region,
            "status": "failed",
            "reason": judged["error"],
            "params": {},
            "measures": {},
            "suspects": [],
            "evidence": [],
        }
    measures = {name: value for name, value in judged["measures"].items() if name != "seconds"}
    return {
        "analyzer": judged["analyzer"],
        "version": judged["version"],
        "title": title,
        "region": region,
        "status": judged["status"],
        "reason": judged["reason"],
        "params": judged["params"],
        "measures": measures,
        "suspects": _owned(team, judged["suspects"])[:MOST_BLAMED],
        "evidence": [
            _piece(team, piece) for piece in judged["evidence"] if not (team and piece["kind"] == "chart")
        ],
    }


def _piece(team: str, piece: Json) -> Json:
    """The first lines of a table; the run has them all."""
    included = _of_team(team, piece)
    left = len(included.get("rows") or ()) - MOST_ROWS
    if left <= 0:
        return included
    note = f"{included['text']} {left} more lines omitted.".strip()
    return {**included, "rows": included["rows"][:MOST_ROWS], "text": note}


def _of_team(team: str, piece: Json) -> Json:
    """A table with a column of components keeps a team's own lines; a chart shows everybody's, and is left out."""
    columns = [name.lower() for name in piece.get("columns") or ()]
    if not team or "component" not in columns:
        return piece
    place, table = columns.index("component"), routing_table()
    rows = [row for row in piece["rows"] if team_of(Subject(row[place]), table).slug == team]
    return {**piece, "rows": rows}
