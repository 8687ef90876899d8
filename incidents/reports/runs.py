"""Scheduled runs in a report. A run counts in the period in which its window ends (data time)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from analyzers.queries import Run
from incidents.domain.values import rfc3339

Json = dict[str, Any]
OUTCOMES = ("named", "quiet", "inconclusive", "failed")


def outcome(run: Run) -> str:
    """One of `OUTCOMES`, empty while the run is under way."""
    return "failed" if run.state == "failed" else run.status


def counted(runs: Sequence[Run]) -> Json:
    """All runs, and those of each schedule, by how they ended."""
    groups: dict[tuple[str, str, str], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.schedule_key or "", run.analyzer, run.region), []).append(run)
    schedules = [
        {"schedule": schedule or None, "analyzer": analyzer, "region": region, **_counts(group)}
        for (schedule, analyzer, region), group in sorted(groups.items())
    ]
    return {**_counts(runs), "schedules": schedules}


def _counts(runs: Sequence[Run]) -> dict[str, int]:
    found = Counter(outcome(run) for run in runs)
    return {"total": len(runs), **{name: found[name] for name in OUTCOMES}}


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
