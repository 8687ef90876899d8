"""What runs that blame no incident say about incidents: opinions while they are open, misses once they are resolved.

Only runs of schedules count: one by hand may have any window and any parameters. An analyzer is heard only where
its window held the incident's component; what it never looked at it cannot contradict.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import groupby
from typing import Any

from django.db.models import Q

from analyzers.queries import Run, judged_over, seen, verdict
from incidents.domain.incident import commands as c
from incidents.domain.incident.opinions import Opinion, Stance
from incidents.domain.incident.outcome import failing_span, has_blamed
from incidents.domain.incident.state import Incident
from incidents.domain.time import optional_time, parse_rfc3339, rfc3339
from incidents.domain.values import NO_CAUSE, is_class
from incidents.incident.models import IncidentRow
from incidents.incident.repository import record
from incidents.incident.rows import state_of
from ingest.queries import Context, Event

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
    for state in concerned:
        before = state.opinions.get(body["analyzer"])
        over = state.last_failure is not None and state.last_failure <= start
        if before is None and (over or looked is None or not looked.names(state.cause)):
            continue
        # Where the failures ended before the window began, whoever it names fails on its own and explains nothing here.
        beside = [] if looked is None or over else [s for s in body["suspects"] if not _later(before, s)]
        instead = next((s for s in beside if looked and looked.beside(state.cause, s["component"])), None)
        record(state.id, c.NoteOpinion(_word(body, start, end, instead)), context_of(event))


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
