"""Since when an incident lasts and which changes can be its cause, from what is stored. Nothing here writes.

Without metrics the onset lies after the last moment at which its source saw no failure: the end of the last window in
which an analyzer that blames the cause judged it and did not name it, or the last time that the first alert was
resolved before.

Metrics speak through the newest run of `changepoint` over the moment at which the incident opened: its verdict lists
every shift with the interval of its onset, and the components without one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from analyzers import queries as analyzers
from incidents.domain.incident.onset import (
    ChangeTest,
    LastGood,
    MetricShifts,
    Onset,
    bounded,
    judge_change,
    of_forecast,
    onset,
    shifts_in,
)
from incidents.domain.suppression.rules import ActiveWindow
from incidents.onsets.change_rows import change_rows
from incidents.queries import (
    BEFORE,
    MOST,
    MOST_ALERTS,
    Incident,
    changes_before,
    first_moment,
    last_moment,
    members,
    names_about,
)
from incidents.suppression.suppressor import windows_between
from ingest.queries import Position, ReportedChange, changes, moment_of, names_of_changed, read_streams

ANALYZER = "changepoint"
DEFAULT_REGION = "default"
"""Region of an incident that names none."""
_RUNS = 3
_EARLIER_RUNS = 20
_EARLIER_WINDOWS = 3
"""Windows of those that are opened to see whether they have rows of the cause."""
_WORKED_ON = timedelta(minutes=30)
"""Time before the onset within which a maintenance window that ended is shown beside it."""
_RATED_OVER = timedelta(days=30)
_MOST_RATED = 500
_ROLLOUT = timedelta(hours=24)
_MOST_OF_A_ROLLOUT = 200


@dataclass(frozen=True, slots=True)
class TestedChange:
    """A change about an incident, and what its test as a cause found."""

    change: ReportedChange
    test: ChangeTest


@dataclass(frozen=True, slots=True)
class Beginning:
    """Since when an incident lasts, the changes about it (the latest first), planned work on it at the onset or
    shortly before, and the run that the metrics are of."""

    onset: Onset
    changes: tuple[TestedChange, ...]
    maintenance: tuple[ActiveWindow, ...]
    run: str | None


def beginning(it: Incident, as_of: Position | None = None) -> Beginning:
    """Of an incident now, or of one as given at `as_of` from what was known then."""
    names = frozenset(names_about(it, as_of))
    run, shifts = _shifts(it, names, None if as_of is None else moment_of(as_of))
    began = _onset(it, names, shifts, as_of)
    rows = _change_rows(it, names, as_of)
    since = first_moment(it) - BEFORE
    found = [*changes_before(it, as_of), *(one for one in rows if one.at >= since)]
    found = sorted(found, key=lambda one: one.at, reverse=True)[:MOST]
    per_hour = _rate(it, sorted(names), rows) if found else 0.0
    judged = {one.component for one in shifts.shifts} | shifts.steady
    tests = tuple(
        TestedChange(one, judge_change(_made(one, it, judged), began, shifts, per_hour)) for one in found
    )
    maintenance = () if as_of is not None else _maintenance(it, began)
    return Beginning(began, tests, maintenance, run)


def metric_shifts(it: Incident) -> tuple[str | None, MetricShifts]:
    """The run that judged metrics over the opening, and what shifted in it; None where there is none."""
    return _shifts(it, frozenset(names_about(it)), None)


def onset_of(it: Incident, as_of: Position | None = None) -> Onset:
    """Since when an incident lasts, without its changes."""
    names = frozenset(names_about(it, as_of))
    _, shifts = _shifts(it, names, None if as_of is None else moment_of(as_of))
    return _onset(it, names, shifts, as_of)


def _onset(it: Incident, names: frozenset[str], shifts: MetricShifts, as_of: Position | None) -> Onset:
    alerts, _ = members(it.id, MOST_ALERTS, as_of=as_of)
    starts = [(min(one.alert.starts_at or it.opened_at, it.opened_at), one.id) for one in alerts]
    first_alert, alert = min(starts) if starts else (None, "")
    began = onset(_named(names, shifts), shifts, it.failing_since, first_alert, it.opened_at)
    if it.is_forecast and it.failing_since is None and not alerts:
        return of_forecast(began)
    if began.source == "metrics":
        return began
    good = _not_firing(alert, began.at, as_of) if began.source == "alert" else _not_named(it, began.at, as_of)
    return bounded(began, good)


def _not_firing(alert: str, until: datetime, as_of: Position | None) -> LastGood:
    """The last time before that the sender resolved the alert."""
    stream = f"alert/{alert}"
    events = read_streams([stream], as_of).get(stream, [])
    ends = [
        one.occurred_at for one in events if one.body["change"] == "resolved" and one.occurred_at <= until
    ]
    if not ends:
        return LastGood(None, "beginning unknown: the alert was not resolved before")
    return LastGood(max(ends), "from the last time that the alert was resolved")


def _not_named(it: Incident, until: datetime, as_of: Position | None) -> LastGood:
    """The end of the last window in which an analyzer that blames the cause judged it and did not name it. One that
    ends where the first row failed is too late: a row tells of the time before it."""
    blaming = sorted(
        one.analyzer for one in it.opinions.values() if one.first_at is not None and not one.forecast
    )
    if not blaming:
        return LastGood(None, "beginning unknown: no analyzer or alert reports on it")
    runs = analyzers.runs().filter(
        analyzer__in=blaming,
        region=it.region or DEFAULT_REGION,
        repeats=None,
        state="done",
        status__in=("named", "quiet"),
        window_end__lt=until,
    )
    if as_of is not None:
        runs = runs.filter(finished_at__lte=moment_of(as_of))
    cause = frozenset(it.cause)
    opened = 0
    for run in runs.order_by("-window_end", "-created_at")[:_EARLIER_RUNS]:
        verdict = analyzers.verdict(run)
        if verdict is None or _suspects(verdict) & cause:
            continue
        window = analyzers.seen(run.window_hash)
        if window is not None and window.names(cause):
            return LastGood(
                run.window_end,
                f"from the end of the last window in which {run.analyzer} judged and did not name it",
            )
        opened += 1
        if opened == _EARLIER_WINDOWS:
            break
    return LastGood(
        None, f"beginning unknown: no earlier window of {', '.join(blaming)} is known to be without it"
    )


def _suspects(verdict: Mapping[str, Any]) -> set[str]:
    named = ((one["component"], *one["ambiguous_with"]) for one in verdict["suspects"])
    return {name for each in named for name in each}


def _maintenance(it: Incident, began: Onset) -> tuple[ActiveWindow, ...]:
    """Windows that name a component of the incident or cover one of its alerts, as they are written now."""
    since = began.low if began.source == "metrics" and began.low is not None else began.at
    found = windows_between(since - _WORKED_ON, began.high)
    if not found:
        return ()
    alerts, _ = members(it.id, MOST_ALERTS)
    return tuple(
        one
        for one in found
        if any(one.window.names(name) for name in it.cause)
        or any(one.window.covers(each.alert.component, each.alert.labels) for each in alerts)
    )


def _named(names: frozenset[str], shifts: MetricShifts) -> tuple[str, ...]:
    """The components that shifted and are called by one of the names, whole or without their kind."""
    found = {one.component for one in shifts.shifts}
    return tuple(sorted(one for one in found if not names.isdisjoint(names_of_changed([("component", one)]))))


def _shifts(
    it: Incident, names: frozenset[str], known_by: datetime | None
) -> tuple[str | None, MetricShifts]:
    """Of the newest finished run over the opening of the incident in which what it is about shifted, else of the
    newest."""
    runs = analyzers.runs().filter(
        analyzer=ANALYZER,
        state="done",
        repeats=None,
        window_start__lte=it.opened_at,
        window_end__gt=it.opened_at,
    )
    if it.region:
        runs = runs.filter(region=it.region)
    if known_by is not None:
        runs = runs.filter(finished_at__lte=known_by)
    newest: tuple[str | None, MetricShifts] = None, MetricShifts()
    for run in runs.order_by("-window_end", "-created_at")[:_RUNS]:
        verdict = analyzers.verdict(run)
        if verdict is None:
            continue
        found = shifts_in(verdict)
        if _named(names, found):
            return str(run.id), found
        newest = newest if newest[0] else (str(run.id), found)
    return newest


def _change_rows(it: Incident, names: frozenset[str], as_of: Position | None) -> list[ReportedChange]:
    """Of what the incident is about, from what the rate counts up to the end of the incident."""
    if not names:
        return []
    until = last_moment(it, as_of)
    return change_rows(it.region or DEFAULT_REGION, it.opened_at - _RATED_OVER, until, sorted(names), as_of)


def _rate(it: Incident, names: Sequence[str], rows: Sequence[ReportedChange]) -> float:
    """Changes an hour of what the incident is about, over 30 days before it opened; at least one in that time."""
    found = changes(it.opened_at - _RATED_OVER, it.opened_at, names, _MOST_RATED)
    count = len(found) + sum(one.at <= it.opened_at for one in rows)
    return max(1, count) / (_RATED_OVER.total_seconds() / 3600)


def _made(one: ReportedChange, it: Incident, judged: set[str]) -> dict[str, datetime]:
    """Time of each component's change: a sender reports one change for each component of a rollout, with the same
    summary."""
    made = dict.fromkeys(_components(one, judged) or it.cause or ("",), one.at)
    if not judged:
        return made
    for other in changes(one.at - _ROLLOUT, one.at + _ROLLOUT, None, _MOST_OF_A_ROLLOUT):
        if (other.integration, other.summary) == (one.integration, one.summary):
            for name in _components(other, judged):
                made[name] = min(other.at, made.get(name, other.at))
    return made


def _components(one: ReportedChange, judged: set[str]) -> set[str]:
    """The components that a change names, and what has metrics under the name of its source."""
    named = {*one.targets, *([one.component] if one.component else [])}
    return named | {name for name in judged if name.partition("/")[2].lower() == one.source.lower()}
