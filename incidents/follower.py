"""The follower of the log: findings and alerts become incidents; other verdicts become opinions and notes on
them.

The follower's position moves in the transaction of its effects, so each event takes effect once. Only runs of
schedules count as opinions: a run by hand may have any window and any parameters. An analyzer's opinion
counts only where its window held the incident's component: it cannot contradict what it never looked at.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import cache
from itertools import groupby
from typing import Any

from django.db.models import Q

from analyzers.queries import Run, judged_over, kinds_of, seen, verdict
from incidents.alerts.correlate import (
    absorb_symptoms,
    on_incident_resolved,
    place_alerts,
    release_withdrawn_symptoms,
)
from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import Links
from incidents.domain.incident.dissent import dissent_of
from incidents.domain.incident.finding import (
    MOST_STEPS,
    Finding,
    JoinOpen,
    OpenNew,
    RecordOnResolved,
    ScheduleWindow,
    candidates,
    finding_from,
    join_of,
    place,
    subject_of,
)
from incidents.domain.incident.outcome import failing_span, has_blamed
from incidents.domain.incident.state import Incident, Opinion, Stance
from incidents.domain.routing.rules import Routing, route
from incidents.domain.values import NO_CAUSE, is_class, optional_time, parse_rfc3339, rfc3339
from incidents.incident.models import FindingPlacement, IncidentRow
from incidents.incident.projection import project_window, state_of, windows_of
from incidents.incident.repository import lock_key, next_number, open_incident_of, record, record_opening
from incidents.scorecards.queries import disputed_blames
from incidents.teams.models import routing_table
from ingest.commands import Follower, register_follower
from ingest.queries import Context, Event, dependencies_of, ordered_id

# Findings
# ----------------------------------------------------------------------------------------------------------
ACTOR = "system:incidents"
MOST_RUNS = 500
"""Of an analyzer's runs over an incident's time, the newest so many are asked whether they named the cause."""
WINDOWS_LOOKED_AT = 12
"""Of those, the newest so many windows are searched for it."""


def context_of(event: Event) -> Context:
    return Context(ACTOR, cause=event.id, trace=event.body.get("run", event.trace))


def record_opinions(event: Event) -> None:
    """Notes what a finished run says about the open incidents that others blame and it does not."""
    body = event.body
    if body["schedule"] is None or body["status"] == "inconclusive":
        return
    start, end = (parse_rfc3339(body["window"][name]) for name in ("start", "end"))
    listed = Q(region=body["region"]) | Q(region=None)
    # Incidents that no analyzer blames are left out: silence about each would only be noise.
    rows = IncidentRow.objects.filter(listed, findings__gt=0, component__isnull=False, last_blamed__gt=start)
    rows = rows.exclude(state="resolved").exclude(cause__overlap=sorted(_named(body["suspects"])))
    states = [state_of(row) for row in rows.order_by("number")]
    concerned = [state for state in states if _news(state, body, end)]
    looked = seen(body.get("window_hash", "")) if concerned else None
    known_disputes = cache(disputed_blames)
    for state in concerned:
        before = state.opinions.get(body["analyzer"])
        over = state.last_failure is not None and state.last_failure <= start
        if before is None and (over or looked is None or not looked.names(state.cause)):
            continue
        # Where the failures ended before the window began, whoever it names fails on its own and explains nothing here.
        beside = [] if looked is None or over else [s for s in body["suspects"] if not _later(before, s)]
        instead = next((s for s in beside if looked and looked.beside(state.cause, s["component"])), None)
        word = _word(body, start, end, instead)
        if before is None or before.dissents:
            kind = (state.component or "").partition("/")[0]
            word = replace(word, dissent=dissent_of(word.analyzer, known_disputes(), kind))
        record(state.id, c.NoteOpinion(word), context_of(event))


def _news(state: Incident, body: Mapping[str, Any], end: datetime) -> bool:
    """Whether the run may change what its analyzer says of the incident: a second silence says nothing new."""
    before = state.opinions.get(body["analyzer"])
    if before is not None:
        return before.weight > 0 or bool(body["suspects"])
    return state.failing_since is None or end > state.failing_since


def _later(before: Opinion | None, suspect: Mapping[str, Any]) -> bool:
    """Whether the suspect began to fail only after its analyzer had blamed the incident.

    A second fault explains nothing of what was seen before it.
    """
    first = optional_time(suspect.get("first_failure"))
    blamed = None if before is None else before.first_at
    return first is not None and blamed is not None and first > blamed


def _named(suspects: Iterable[Mapping[str, Any]]) -> set[str]:
    return {name for one in suspects for name in (one["component"], *(one.get("ambiguous_with") or ()))}


def _word(
    body: Mapping[str, Any], start: datetime, end: datetime, instead: Mapping[str, Any] | None
) -> Stance:
    named = instead or {}
    return Stance(
        analyzer=body["analyzer"],
        version=body["version"],
        run=body["run"],
        schedule=body["schedule"],
        window_start=start,
        window_end=end,
        component=named.get("component"),
        ambiguous_with=tuple(named.get("ambiguous_with") or ()),
        score=named.get("score"),
    )


def note_missed(event: Event) -> None:
    """On an incident resolved with a component: who judged windows over it and named it in none of them."""
    row = IncidentRow.objects.filter(pk=event.stream.removeprefix("incident/")).first()
    if row is None or event.body["confirmed_cause"] in (None, NO_CAUSE):
        return
    state, cause = state_of(row), event.body["confirmed_cause"]
    if is_class(cause):
        return
    since, until = failing_span(state, event.occurred_at)
    runs = sorted(judged_over(state.region, since, until), key=lambda run: run.analyzer)
    for analyzer, found in groupby(runs, key=lambda run: run.analyzer):
        over = list(found)[-MOST_RUNS:]
        opinion = state.opinions.get(analyzer)
        if (opinion is None or not has_blamed(opinion)) and _missed(over, cause):
            record(state.id, _note(cause, over), context_of(event))


def _missed(runs: list[Run], cause: str) -> bool:
    """Whether none of the runs names the cause although the window of one holds it."""
    for run in runs:
        judged = verdict(run) if run.status == "named" else None
        if judged is not None and cause in _named(judged["suspects"]):
            return False
    windows = (seen(run.window_hash) for run in runs[: -WINDOWS_LOOKED_AT - 1 : -1])
    return any(window is not None and window.names({cause}) for window in windows)


def _note(cause: str, runs: list[Run]) -> c.RecordMissedCause:
    last = runs[-1]
    return c.RecordMissedCause(
        confirmed_cause=cause,
        analyzer=last.analyzer,
        version=last.version,
        windows=len(runs),
        window_start=rfc3339(min(run.window_start for run in runs)),
        window_end=rfc3339(max(run.window_end for run in runs)),
        run=str(last.pk),
    )


# Follower
# ----------------------------------------------------------------------------------------------------------
def handle(events: list[Event]) -> None:
    """In the order of the log: a run's `analysis.recorded` comes before its findings. Alerts in a row go together."""
    for are_alerts, run in groupby(events, lambda event: event.type == "alert.reported"):
        if are_alerts:
            place_alerts(list(run))
        else:
            _one_by_one(run)


def _one_by_one(events: Iterable[Event]) -> None:
    for event in events:
        if event.type == "analysis.recorded":
            # Incidents first: the transaction should get its id while it holds their rows (see `_append`).
            _note_no_longer_blamed(event)
            record_opinions(event)
            project_window(event)
            release_withdrawn_symptoms(event)
        elif event.type == "incident.resolved":
            note_missed(event)
            on_incident_resolved(event)
        else:
            _place(finding_from(event.body), event)


FOLLOWED = frozenset({"alert.reported", "analysis.recorded", "finding.reported", "incident.resolved"})


@cache
def follower() -> Follower:
    return Follower("incidents", FOLLOWED, handle, together=frozenset({"alert.reported"}))


def register() -> None:
    register_follower(follower())


def _place(finding: Finding, event: Event) -> None:
    if FindingPlacement.objects.filter(run=finding.run, component=finding.component).exists():
        return
    rows = IncidentRow.objects.filter(cause__overlap=sorted(finding.cause))
    # Locked, so that what is decided here still holds when it is carried out.
    same = [state_of(row) for row in rows.order_by("number").select_for_update()]
    windows = [] if finding.schedule is None else windows_of(finding.schedule)
    kinds = kinds_of(finding.run, finding.analyzer) if any(one.known_until for one in same) else None
    placement = place(finding, same, windows, kinds)
    if isinstance(placement, OpenNew):
        placement = _related(finding, windows) or placement
    context = context_of(event)
    if isinstance(placement, JoinOpen):
        command = c.JoinFinding(finding, _routed(finding, event).severity, placement.relation)
        joined = record(placement.incident.id, command, context)
        absorb_symptoms(placement.incident, joined.incident, event)
        release_withdrawn_symptoms(event)
    elif isinstance(placement, RecordOnResolved):
        record(placement.incident.id, c.RecordFinding(finding), context)
    elif isinstance(placement, OpenNew):
        opened = _open(finding, placement.why, _routed(finding, event), context, event.recorded_at)
        absorb_symptoms(None, opened, event)


def _related(finding: Finding, windows: Sequence[ScheduleWindow]) -> JoinOpen | None:
    """The open incident of another component that the finding is about by the topology of the time, if any."""
    named = (one.causes for one in windows if one.end == finding.window_end)
    beside = [cause for causes in named for cause in causes if not cause & finding.cause]
    rows = IncidentRow.objects.filter(findings__gt=0, region=finding.region, component__isnull=False)
    # Locked, so that what is decided here still holds when it is carried out.
    rows = rows.exclude(state="resolved").order_by("number").select_for_update()
    found = candidates(finding, [state_of(row) for row in rows], beside)
    if not found:
        return None
    names = finding.cause.union(*beside, *(one.cause for one in found))
    known = dependencies_of(finding.region, sorted(names), finding.window_end, MOST_STEPS)
    links = {name: Links(one.parents, one.depends_on, one.path) for name, one in known.items()}
    return join_of(finding, found, beside, links)


def _routed(finding: Finding, event: Event) -> Routing:
    return route(subject_of(finding, event.recorded_at), routing_table(), finding.ambiguous_with)


def _open(finding: Finding, why: str, routing: Routing, context: Context, at: datetime) -> Incident:
    key, number = finding.dedup_key, next_number()
    lock_key(key)
    # An incident may hold the key that is no longer about this component: its cause was narrowed, or a report chose it.
    taken = open_incident_of(key) is not None
    # The id follows from the finding: nothing that is handled twice opens two incidents.
    id_ = str(ordered_id(at, f"finding:{finding.run}:{finding.component}"))
    opening = c.OpenForFinding(id_, number, routing, finding, why, f"{key}#{number}" if taken else key)
    return record_opening(opening, context).incident


def _note_no_longer_blamed(event: Event) -> None:
    body = event.body
    if body["schedule"] is None or body["status"] == "inconclusive":
        return
    named = {name for s in body["suspects"] for name in (s["component"], *(s.get("ambiguous_with") or ()))}
    end = body["window"]["end"]
    blamed = IncidentRow.objects.filter(blamed_by__contains=[body["schedule"]]).exclude(state="resolved")
    quiet = blamed.exclude(cause__overlap=sorted(named)).filter(last_blamed__lt=parse_rfc3339(end))
    for id_ in quiet.order_by("number").values_list("pk", flat=True):
        note = c.ClearFinding(body["run"], body["schedule"], body["analyzer"], end)
        record(str(id_), note, context_of(event))
