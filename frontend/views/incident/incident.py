"""The page of one incident: what is wrong and who says so, the evidence, what happened, what can be done."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_safe

from analyzers import queries as analyzers
from frontend.alternatives import alternatives
from frontend.evidence import Group, cleared, grouped, latest_of_each
from frontend.ownership_panel import ownership_times
from frontend.templatetags.times import exact
from frontend.views.incident.alerts import Section, section
from frontend.views.incident.choices import Problem, form_choices
from frontend.views.incident.history import history, moments, place_of
from frontend.views.incident.list_context import among
from frontend.views.oncall.escalation import escalation_of, past_words, plan_of, words
from frontend.views.pages import page, show, user_name
from incidents import queries
from incidents.alerts.changes import changes_before
from incidents.domain.time import parse_rfc3339
from incidents.incident.failures import failure_shown, moment
from incidents.notifications.queries import failed_calls
from incidents.scorecards.queries import scorecards
from incidents.similarity.team_odds import views_of_teams
from incidents.suppression import incidents
from ingest.queries import Position

__all__ = ["Problem", "by_id", "incident", "render_incident"]

MOST_JOINS = 6
"""Reasons for which alerts joined that the page tells."""
MANY_ALERTS = 10
"""So many are not read one by one: the page says what they have in common."""
MOST_SHARED = 8


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
    state = view.incident
    entries = queries.timeline(reference, as_of)
    alerts = section(reference, request.GET.get("alerts", "1"), as_of)
    judged = _judged(view, entries, as_of)
    told = moments(queries.timeline(reference) if as_of else entries)
    context = {
        "i": state,
        "failure": failure_shown(view, as_of),
        "among": among(request, number),
        "position_of_view": view.position,
        "as_of": as_of,
        # What is fetched beside the page is of the same moment.
        "then": f"?as_of={as_of}" if as_of else "",
        "history": history(entries, request.GET.get("show", "")),
        "moments": told,
        "moment_place": place_of(told, as_of),
        "moment_words": _moment_words(request.GET.get("as_of", ""), told[place_of(told, as_of)]["at"]),
        **judged,
        **_opinions(view),
        "alerts": alerts,
        "settling": 0 if as_of or state.state != "resolved" else queries.being_settled(reference),
        "joins": _joins(alerts),
        "shared": _shared(reference, state, alerts) if not as_of else None,
        "changes": changes_before(state, as_of),
        **_calls(state, as_of),
        "overridden": incidents.overridden(state.id, timezone.now()) if not as_of else [],
        "custody": ownership_times(state, entries[-1].last_at if as_of else timezone.now()),
        "team_names": {team.slug: team.name for team in queries.teams()},
    }
    if not as_of:
        views = views_of_teams(state)
        context |= {
            **form_choices(state, judged["suspects"], user_name(request), problem),
            "team_views": [one for one in views if one.team != state.team],
            "own_view": next((one for one in views if one.team == state.team), None),
        }
    watch = "" if as_of else state.id
    return show(
        request, "frontend/incident/incident.html", context, section="inbox", watch=watch, status=status
    )


def _moment_words(asked: str, at: str) -> str:
    """The time that an address asks for; of a position the time of the event that it shows last."""
    try:
        return exact(parse_rfc3339(asked.replace(" ", "+")))
    except (ValueError, OverflowError):
        return exact(at)


def _judged(view: queries.View, entries: Sequence[queries.Entry], as_of: Position | None) -> dict[str, Any]:
    """Suspects, evidence, and what was looked at beside them."""
    groups = grouped(queries.evidence(view.incident.id, as_of))
    attached, older = latest_of_each(groups, view.incident.analyzer)
    findings = _latest_findings(view, entries)
    current = [_as_of_the_latest_run(group, findings) for group in attached]
    finding = findings.get(view.incident.analyzer or "") or next(iter(findings.values()), None)
    verdict = None if finding is None else _verdict_of(finding)
    suspects = [] if finding is None else _suspects(view, finding, verdict)
    looked_into = cleared(piece for group in current for piece in group.pieces)
    return {
        "current": current,
        "older": [old for old, new in zip(attached, current, strict=True) if old is not new] + older,
        "evidence_version": f"{as_of}-{'-'.join(_version(group) for group in (*current, *older))}",
        "suspects": suspects,
        "assumptions": verdict["assumptions"] if verdict else [],
        "alternatives": alternatives(view.incident, suspects, looked_into),
    }


def _calls(it: queries.Incident, as_of: Position | None) -> dict[str, Any]:
    """Who is called for it, as a line and as a plan."""
    now = timezone.now()
    found = escalation_of(it, now, as_of)
    failed, reached = failed_calls(it.id, None if as_of is None else moment(as_of))
    calls = {"not_reached": failed, "anybody_reached": reached}
    if found is None:
        return {**calls, "escalation": None, "plan": None}
    return {**calls, "escalation": past_words(found) if as_of else words(found, now), "plan": plan_of(found)}


def _joins(alerts: Section) -> list[dict[str, Any]]:
    """Why the alerts on this page of them joined, the commonest reason first."""
    counted = Counter(one.why for one in alerts.alerts if one.why)
    return [{"why": why, "count": count} for why, count in counted.most_common(MOST_JOINS)]


def _shared(reference: str, state: queries.Incident, alerts: Section) -> dict[str, Any] | None:
    """What many alerts have in common, as far as the facts of the incident do not say it; None where that is
    nothing.
    """
    if alerts.total < MANY_ALERTS:
        return None
    found = queries.shared_labels(reference)
    labels = [one for one in found.labels if state.labels.get(one[0]) != one[1]][:MOST_SHARED]
    return {"labels": labels, "of": found.looked_at} if labels else None


def _latest_findings(view: queries.View, entries: Sequence[queries.Entry]) -> dict[str, Mapping[str, Any]]:
    """By analyzer, newest first: the latest finding that blames the incident's cause."""
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


def _suspects(
    view: queries.View, finding: Mapping[str, Any], verdict: Mapping[str, Any] | None
) -> list[dict[str, Any]]:
    """The suspects of the latest run that blamed this incident's component, its own suspect first."""
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


def _opinions(view: queries.View) -> dict[str, Any]:
    """What each analyzer says, with its record, and how many of them blame its cause."""
    said = view.opinions
    cards = scorecards([one.analyzer for one in said], waiting=False) if said else {}
    return {
        "opinions": [{"said": one, "card": cards[one.analyzer]} for one in said],
        "agree": sum(one.says == "blames" for one in said),
        "asked": len(said),
    }
