"""The daily report, computed from what is recorded, so that any past day can be made up.

A day is a UTC day. Runs count on the day (data time) on which their window ends, tickets on the day on which
the log recorded that they were opened or resolved.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, date, datetime, time, timedelta
from typing import Any

from analyzers.queries import Run, runs_with_window_ending
from incidents import queries
from incidents.domain.times import rfc3339
from ingest.queries import Event, position_at, read_all

Json = dict[str, Any]
OUTCOMES = ("named", "quiet", "inconclusive", "failed")
_SLACK = timedelta(
    minutes=5
)  # events stand in the log in another order than their recorded times, by so much at most


def report_of(day: date) -> Json:
    """The report of a day, also of one that is not over yet."""
    start = datetime.combine(day, time(), UTC)
    end = start + timedelta(days=1)
    runs = [run for run in runs_with_window_ending(start, end) if outcome(run)]
    tickets = list(_tickets(start, end))
    return {
        "day": day.isoformat(),
        "runs": _counts(runs),
        "schedules": _by_schedule(runs),
        "blamed": blamed(runs),
        "opened": [ticket for kind, ticket in tickets if kind == "incident.opened"],
        "resolved": [ticket for kind, ticket in tickets if kind == "incident.resolved"],
    }


def outcome(run: Run) -> str:
    """One of `OUTCOMES`, empty while the run is under way."""
    return "failed" if run.state == "failed" else run.status


def _counts(runs: Sequence[Run]) -> dict[str, int]:
    found = Counter(outcome(run) for run in runs)
    return {"total": len(runs), **{name: found[name] for name in OUTCOMES}}


def _by_schedule(runs: Sequence[Run]) -> list[Json]:
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.schedule_key or "", run.analyzer, run.region), []).append(run)
    return [
        {"schedule": schedule or None, "analyzer": analyzer, "region": region, **_counts(group)}
        for (schedule, analyzer, region), group in sorted(groups.items())
    ]


def blamed(runs: Iterable[Run]) -> list[Json]:
    """Each component that a run blamed: how often, how surely at most, when; most often first."""
    found: dict[tuple[str, str], Json] = {}
    for run in runs:
        for suspect in run.blamed:
            entry = found.setdefault(
                (suspect["component"], run.region),
                {
                    "component": suspect["component"],
                    "region": run.region,
                    "runs": 0,
                    "score": None,
                    "first": rfc3339(run.window_start),
                    "last": rfc3339(run.window_end),
                },
            )
            scores = [score for score in (entry["score"], suspect["score"]) if score is not None]
            entry["runs"] += 1
            entry["score"] = max(scores, default=None)
            entry["first"] = min(entry["first"], rfc3339(run.window_start))
            entry["last"] = max(entry["last"], rfc3339(run.window_end))
    return sorted(found.values(), key=lambda one: (-one["runs"], one["component"], one["region"]))


def _tickets(start: datetime, end: datetime) -> Iterator[tuple[str, Json]]:
    for event in _events(frozenset({"incident.opened", "incident.resolved"}), start, end):
        view = queries.get(event.stream.removeprefix("incident/"), as_of=event.position).as_json()
        ticket = {
            name: view[name]
            for name in ("id", "number", "title", "severity", "component", "team", "opened_at", "url")
        }
        if event.type == "incident.resolved":
            opened, resolved = (datetime.fromisoformat(view[name]) for name in ("opened_at", "resolved_at"))
            ticket |= {
                "resolved_at": view["resolved_at"],
                "confirmed_cause": view["confirmed_cause"],
                "minutes_open": round((resolved - opened).total_seconds() / 60, 1),
            }
        yield event.type, ticket


def _events(types: frozenset[str], start: datetime, end: datetime) -> Iterator[Event]:
    """Events of some types recorded in `[start, end)`, in the order of the log."""
    after, upto = position_at(start - _SLACK), position_at(end + _SLACK)
    while events := read_all(after, 500, types, upto=upto):
        yield from (event for event in events if start <= event.recorded_at < end)
        after = events[-1].position
