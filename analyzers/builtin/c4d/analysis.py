"""The verdict of `c4d` on a window: each job by its own, at the window's end."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from analyzers.builtin.c4d import evidence
from analyzers.builtin.c4d.findings import INDICATORS, Finding, Judged, component, judge_job
from analyzers.builtin.c4d.hangs import LOST, lost_share
from analyzers.builtin.c4d.observed import COMPLETED, jobs_of
from analyzers.builtin.c4d.places import nodes_of
from analyzers.builtin.text import percent
from analyzers.contract import Assumption, Params, Suspect, Verdict, Window, inconclusive, quiet

_FEW = 16
"""Completed operations of a rank below which little can be said of slowness."""


def analyze(window: Window, params: Params) -> Verdict:
    now = (window.end - window.start).total_seconds()
    jobs = [judge_job(records, now, params) for records in jobs_of(window)]
    measures = measures_of(jobs)
    if not jobs:
        return inconclusive("There are no records of collectives in this window.", measures)
    assumptions = (_sampling(jobs), _history(jobs))
    shown = evidence.pieces(window, jobs)
    if any(job.findings for job in jobs):
        several = len(jobs) > 1
        named = [_suspect(window, job, one, several) for job in jobs for one in job.findings]
        suspects = tuple(sorted(named, key=_rank))
        return Verdict("named", _distinct(suspects), None, measures, shown, assumptions)
    reasons = [reason for job in jobs if (reason := _undecided(job))]
    if reasons:
        return Verdict("inconclusive", (), " ".join(reasons), measures, shown, assumptions)
    return quiet(measures, shown, assumptions)


def measures_of(jobs: Sequence[Judged]) -> dict[str, Any]:
    hangs = [job.hang for job in jobs if job.hang is not None]
    return {
        "jobs": len(jobs),
        "ranks": sum(len(job.records.ranks) for job in jobs),
        "operations": sum(int((job.records.state == COMPLETED).sum()) for job in jobs),
        "blocked_ranks": sum(one.blocked for one in hangs),
        "stall_seconds": round(max((one.stall for one in hangs), default=0.0), 3),
        "late_ranks": sum(len(job.late) for job in jobs),
        "hot_connections": sum(
            len(one.pairs) for job in jobs if job.delays is not None for one in job.delays.found
        ),
    }


def _suspect(window: Window, job: Judged, one: Finding, several: bool) -> Suspect:
    first = window.start + timedelta(seconds=one.since)
    name = component(one.place, one.job, several)
    return Suspect(
        component=name,
        score=one.score,
        summary=one.summary,
        ambiguous_with=tuple(sorted(component(place, one.job, several) for place in one.alike)),
        sure=one.sure,
        first_failure=min(first, window.end),
        last_failure=window.end,
        phrase=one.phrase[:200],
        indicator=INDICATORS[one.indicator],
        path=(name, *nodes_of(job.records, one.place), f"job/{one.job}"),
    )


def _rank(one: Suspect) -> tuple[float, datetime, str]:
    assert one.first_failure is not None
    return -(one.score or 0.0), one.first_failure, one.component


def _distinct(suspects: Sequence[Suspect]) -> tuple[Suspect, ...]:
    """Each component once: the first entry that has it."""
    seen: set[str] = set()
    retained = []
    for one in suspects:
        if one.component not in seen:
            retained.append(one)
            seen |= {one.component, *one.ambiguous_with}
    return tuple(retained)


def _undecided(job: Judged) -> str:
    hang, delays = job.hang, job.delays
    if hang is not None and hang.reason:
        return f"Job {job.records.job} has made no progress for {hang.stall:.0f} s: {hang.reason}."
    if delays is not None and delays.is_widespread:
        return (
            f"Transfers of job {job.records.job} are slow between many ranks alike: congestion, or pairs of different "
            "distance; no one rank explains it."
        )
    return ""


def _sampling(jobs: Sequence[Judged]) -> Assumption:
    lost = max(lost_share(job.records, (~job.records.is_transfer).nonzero()[0]) for job in jobs)
    detail = (
        f"{percent(lost)} of the ranks' parts in operations have no record; up to {percent(LOST)} is taken as "
        "complete."
    )
    return Assumption("sampling", lost <= LOST, detail)


def _history(jobs: Sequence[Judged]) -> Assumption:
    least = min(int((job.records.state == COMPLETED).sum()) // max(1, len(job.records.ranks)) for job in jobs)
    detail = f"{least} completed operations per rank, of {_FEW} that are needed to know delays and lateness."
    return Assumption("history", least >= _FEW, detail)
