"""The page of one incident: what is wrong and who says so, the evidence, what happened, what can be done."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from django.contrib.auth import get_user_model
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from analyzers import queries as analyzers
from frontend.custody import custody
from frontend.evidence import Group, grouped, latest_of_each
from frontend.views.alerts import section
from frontend.views.escalation import line_of
from frontend.views.pages import page, show
from incidents import queries
from incidents.changes import changes_before
from incidents.commands import Happened
from incidents.scorecards.queries import scorecards

MORE = ("merge", "set_title", "link")
"""Verbs whose forms share a panel."""
SNOOZES = (
    ("1", "For an hour"),
    ("4", "For 4 hours"),
    ("24", "For a day"),
    ("72", "For 3 days"),
    ("change", "Until it changes: an alert joins, or another analyzer blames it"),
)
SEVERITIES = ("critical", "error", "warning", "info")


@dataclass(frozen=True, slots=True)
class Problem:
    """Why an action was not carried out, and what was typed, so that nothing has to be typed again."""

    verb: str
    reason: str
    typed: Mapping[str, str]
    meanwhile: Sequence[Happened] = ()
    """What others did since this page was shown: the form below is there again, for the ticket as it is now."""


@page
@require_safe
def incident(request: HttpRequest, number: int) -> HttpResponse:
    return render_incident(request, number)


@page
@require_safe
def by_id(_: HttpRequest, id: UUID) -> HttpResponse:
    """The address by id leads to the one by number."""
    return redirect("incident", queries.get(str(id)).incident.number)


def render_incident(
    request: HttpRequest, number: int, problem: Problem | None = None, status: int = 200
) -> HttpResponse:
    as_of = queries.parse_moment(request.GET["as_of"]) if request.GET.get("as_of") else None
    reference = str(number)
    view = queries.get(reference, as_of)
    entries = queries.timeline(reference, as_of)
    groups = grouped(queries.evidence(reference, as_of))
    attached, older = latest_of_each(groups, view.incident.analyzer)
    findings = _latest_findings(view, entries)
    current = [_as_of_the_latest_run(group, findings) for group in attached]
    suspects = _suspects(view, findings)
    context = {
        "i": view.incident,
        "position_of_view": view.position,
        "as_of": as_of,
        # A title that an analyzer gave says what its first verdict said; the latest stands above it.
        "by_analyzer": view.incident.opened_by.startswith("system:")
        and not any(entry.type == "incident.title_set" for entry in entries),
        "entries": list(reversed(entries)),
        "current": current,
        "older": [old for old, new in zip(attached, current, strict=True) if old is not new] + older,
        "evidence_version": f"{as_of}-{'-'.join(_version(group) for group in (*current, *older))}",
        "suspects": suspects,
        "opinions": _opinions(view),
        "alerts": section(reference, request.GET.get("alerts", "1"), as_of),
        "changes": [] if as_of else changes_before(reference),
        "causes": _causes(view, suspects),
        "snoozes": SNOOZES,
        "escalation": None if as_of else line_of(reference, timezone.now()),
        "more": MORE,
        "custody": custody(view.incident, entries[-1].last_at if as_of else timezone.now()),
        "team_names": {team.slug: team.name for team in queries.teams()},
        "people": _people(),
        "severities": SEVERITIES,
        "problem": problem,
        "problem_alone": problem is not None and problem.verb not in _panels(view.incident),
    }
    watch = "" if as_of else view.incident.id
    return show(request, "frontend/incident.html", context, section="inbox", watch=watch, status=status)


def _latest_findings(view: queries.View, entries: Sequence[queries.Entry]) -> dict[str, Mapping[str, Any]]:
    """By analyzer, newest first: the latest finding that blames the ticket's cause."""
    findings: dict[str, Mapping[str, Any]] = {}
    for entry in reversed(entries):
        finding = entry.body.get("finding")
        if finding and view.incident.cause & {finding["component"], *finding["ambiguous_with"]}:
            findings.setdefault(finding["analyzer"], finding)
    return findings


def _verdict_of(finding: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """A run is never changed, so this holds for past moments too. None where the run is not known here."""
    run = analyzers.runs().filter(pk=finding["run"]).first()
    return None if run is None else analyzers.verdict(run)


def _as_of_the_latest_run(group: Group, findings: Mapping[str, Mapping[str, Any]]) -> Group:
    """Evidence is attached once in a while; the figures beside it are the latest, so its latest tables are shown."""
    finding = findings.get(group.analyzer or "")
    if finding is None or group.finding is None or finding["window"]["end"] <= group.finding["window"]["end"]:
        return group
    verdict = _verdict_of(finding)
    return group if verdict is None else group.renewed(finding, verdict)


def _version(group: Group) -> str:
    return f"{group.version}" if group.finding is None else f"{group.version}.{group.finding['run']}"


def _suspects(view: queries.View, findings: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the latest run that blamed this ticket's component said: the ticket's own suspect first; of the
    analyzer whose sentence the ticket shows if it did, else of any.
    """
    finding = findings.get(view.incident.analyzer or "") or next(iter(findings.values()), None)
    if finding is None:
        return []
    verdict = _verdict_of(finding)
    if verdict is None:
        return [{**finding, "own": True, "rank": 1, "estimate": None}]
    numbers = {placed.component: placed.number for placed in queries.placed_findings(finding["run"])}
    suspects = [
        {
            **suspect,
            "own": bool(view.incident.cause & {suspect["component"], *suspect["ambiguous_with"]}),
            "number": numbers.get(suspect["component"]),
        }
        for suspect in verdict["suspects"]
    ]
    return sorted(suspects, key=lambda suspect: (not suspect["own"], suspect["rank"]))


def _opinions(view: queries.View) -> list[dict[str, Any]]:
    """What each analyzer says, with its record."""
    said = view.opinions
    cards = scorecards([one.analyzer for one in said]) if said else {}
    return [{"said": one, "card": cards[one.analyzer]} for one in said]


def _causes(view: queries.View, suspects: Sequence[Mapping[str, Any]]) -> list[tuple[str, float | None]]:
    """What is offered as confirmed cause, with the probability that an analyzer gave it."""
    causes: dict[str, float | None] = {}
    for suspect in suspects:
        causes.setdefault(suspect["component"], suspect["score"])
        for name in suspect["ambiguous_with"] if suspect["own"] else ():
            causes.setdefault(name, None)
    for name in (view.incident.component, *view.incident.ambiguous_with):
        if name:
            causes.setdefault(name, None)
    return list(causes.items())


def _panels(state: queries.Incident) -> set[str]:
    """The forms that can show what went wrong beside what was typed; without one it stands alone."""
    if state.merged_into is not None:
        return {"comment", "set_severity"}
    if state.state == "resolved":
        return {"comment", "set_severity", "reopen", *MORE}
    answers = {"bounce"} if state.handed_over else set()
    return {
        "comment",
        "set_severity",
        "resolve",
        "assign",
        "hand_over",
        "snooze",
        "escalate",
        *MORE,
    } | answers


def _people() -> list[str]:
    users = get_user_model().objects.filter(is_active=True)
    return list(users.order_by("username").values_list("username", flat=True)[:500])
