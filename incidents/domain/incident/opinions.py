"""What each analyzer says about one incident, and what several that agree are worth together.

Of an analyzer only its latest word counts. `blames`: it names the incident's cause. `blames_other`: it looked at the
cause and names something else on the same paths. `saw_nothing`: it looked and names nothing there.
`no_longer_blames`: it did, and a later window of the same schedule does not.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any, Final, Literal

from incidents.domain.time import optional_rfc3339, optional_time, parse_rfc3339, rfc3339

Says = Literal["blames", "blames_other", "saw_nothing", "no_longer_blames"]
Opinions = Mapping[str, "Opinion"]
"""By name of the analyzer."""

FAILS: Final = "fails {} of what depends on it"
"""What a failure rate is of, where the analyzer says nothing else."""

SHARED_EVIDENCE: Final = 0.5
"""What a second analyzer's log-odds count: it may have read the same telemetry. With 0.5 the fused number keeps its
word even then; where they share nothing but the fault it is too modest (`tests/benchmarks/fusion.py`)."""
CAP: Final = 0.999
"""Agreement alone never makes more than this of scores below it."""

_WEIGHT: Mapping[Says, int] = {"blames": 2, "blames_other": 1, "saw_nothing": 0, "no_longer_blames": 0}


@dataclass(frozen=True, slots=True)
class Stance:
    """What a finished window of a schedule says about an incident that it does not blame.

    `component` is what it names instead, None when it names nothing there.
    """

    analyzer: str
    version: str
    run: str
    schedule: str
    window_start: datetime
    window_end: datetime
    component: str | None = None
    ambiguous_with: tuple[str, ...] = ()
    score: float | None = None


@dataclass(frozen=True, slots=True)
class Opinion:
    """The latest word of one analyzer. Component, group and score are those that it blames or blamed last.

    `schedules` are those that still say so; `first_at` is when it first blamed this incident, None if it never did.
    """

    analyzer: str
    version: str
    says: Says
    component: str | None
    ambiguous_with: tuple[str, ...]
    score: float | None
    failure_rate: float | None
    run: str
    schedules: tuple[str, ...]
    window_start: datetime
    window_end: datetime
    first_at: datetime | None
    phrase: str = FAILS
    forecast: bool = False

    @property
    def cause(self) -> frozenset[str]:
        """The component and those that the data could not tell apart from it; empty if it names nothing."""
        return frozenset(() if self.component is None else (self.component, *self.ambiguous_with))

    @property
    def weight(self) -> int:
        return _WEIGHT[self.says]

    def as_json(self) -> dict[str, Any]:
        return {
            "analyzer": self.analyzer,
            "version": self.version,
            "says": self.says,
            "component": self.component,
            "ambiguous_with": list(self.ambiguous_with),
            "score": self.score,
            "failure_rate": self.failure_rate,
            "phrase": self.phrase,
            "forecast": self.forecast,
            "run": self.run,
            "schedules": list(self.schedules),
            "window": {"start": rfc3339(self.window_start), "end": rfc3339(self.window_end)},
            "first_at": optional_rfc3339(self.first_at),
        }


def opinion_from(body: Mapping[str, Any]) -> Opinion:
    """Reads `Opinion.as_json`."""
    return Opinion(
        analyzer=body["analyzer"],
        version=body["version"],
        says=body["says"],
        component=body["component"],
        ambiguous_with=tuple(body["ambiguous_with"]),
        score=body["score"],
        failure_rate=body["failure_rate"],
        phrase=body.get("phrase", FAILS),
        forecast=body.get("forecast", False),
        run=body["run"],
        schedules=tuple(body["schedules"]),
        window_start=parse_rfc3339(body["window"]["start"]),
        window_end=parse_rfc3339(body["window"]["end"]),
        first_at=optional_time(body["first_at"]),
    )


def blaming(before: Opinion | None, finding: Mapping[str, Any], leads: bool, at: datetime | None) -> Opinion:
    """The opinion after a finding joined, from the finding's reference.

    One that merely meets the incident's group (`leads` false) names a neighbour; it does not take back what the
    same analyzer says of the cause itself.
    """
    if not leads and before is not None and before.says == "blames":
        return before
    says: Says = "blames" if leads else "blames_other"
    schedule = finding["schedule"]
    same = before.schedules if before is not None and before.says == says else ()
    first_at = None if before is None else before.first_at
    return Opinion(
        analyzer=finding["analyzer"],
        version=finding["version"],
        says=says,
        component=finding["component"],
        ambiguous_with=tuple(finding["ambiguous_with"]),
        score=finding["score"],
        failure_rate=finding["failure_rate"],
        phrase=finding.get("phrase", FAILS),
        forecast=finding.get("forecast", False),
        run=finding["run"],
        schedules=same if schedule is None else tuple(sorted({*same, schedule})),
        window_start=parse_rfc3339(finding["window"]["start"]),
        window_end=parse_rfc3339(finding["window"]["end"]),
        first_at=at if leads and first_at is None else first_at,
    )


def without(before: Opinion, schedule: str) -> Opinion:
    """The opinion once a schedule says so no more; the window stays that of the last blame."""
    if schedule not in before.schedules:
        return before
    left = tuple(one for one in before.schedules if one != schedule)
    if left or before.weight == 0:
        return replace(before, schedules=left)
    quiet: Says = "saw_nothing" if before.first_at is None else "no_longer_blames"
    return replace(before, schedules=left, says=quiet)


def after_word(before: Opinion | None, word: Stance) -> Opinion | None:
    """The opinion that `word` makes of `before`; None where it changes nothing.

    A weaker word takes a stronger one back only if it comes from a schedule that said it, and from a later window:
    the hour that sees nothing does not contradict the day that does.
    """
    says: Says = "blames_other" if word.component is not None else "saw_nothing"
    if before is None:
        return _spoken(word, says, None)
    if word.window_end <= before.window_end:
        return None
    taken_back = not before.schedules or word.schedule in before.schedules
    if says == "saw_nothing":
        if before.weight == 0 or not taken_back:
            return None
        if before.first_at is None:
            return _spoken(word, says, None)
        kept = _spoken(word, "no_longer_blames", before.first_at)
        return replace(
            kept,
            component=before.component,
            ambiguous_with=before.ambiguous_with,
            score=before.score,
            failure_rate=before.failure_rate,
            phrase=before.phrase,
            forecast=before.forecast,
        )
    if before.weight > 0 and not taken_back:
        return None
    if before.says == "blames_other" and before.component == word.component:
        return None
    return _spoken(word, says, before.first_at)


def _spoken(word: Stance, says: Says, first_at: datetime | None) -> Opinion:
    return Opinion(
        analyzer=word.analyzer,
        version=word.version,
        says=says,
        component=word.component,
        ambiguous_with=word.ambiguous_with,
        score=word.score,
        failure_rate=None,
        phrase=FAILS,
        run=word.run,
        schedules=(word.schedule,),
        window_start=word.window_start,
        window_end=word.window_end,
        first_at=first_at,
    )


def agreeing(opinions: Opinions, cause: frozenset[str]) -> list[Opinion]:
    """Those that blame the cause about the same time as the newest of them: its window overlaps theirs.

    The one whose sentence the incident shows comes first: the highest score, then a known failure rate, then the name.
    Forecasts agree with one another only: they say nothing about a fault that is there.
    """
    blames = [one for one in opinions.values() if one.says == "blames" and one.cause & cause]
    if not all(one.forecast for one in blames):
        blames = [one for one in blames if not one.forecast]
    if not blames:
        return []
    newest = max(blames, key=lambda one: (one.window_end, one.analyzer))
    together = [
        one for one in blames if one.window_start < newest.window_end and newest.window_start < one.window_end
    ]
    return sorted(together, key=lambda one: (-(one.score or 0.0), one.failure_rate is None, one.analyzer))


def fused(scores: Iterable[float | None], shared: float = SHARED_EVIDENCE) -> float | None:
    """The probability that several analyzers together give a component, from the score of each.

    The log-odds of the best, plus `shared` times those of each other one as far as they speak for it
    (a score under one half is no evidence against what it blames). None supports without a number.
    One score alone stays what it is; agreement never lowers the best and never exceeds `CAP`.
    """
    known = sorted((score for score in scores if score is not None), reverse=True)
    if len(known) < 2:
        return known[0] if known else None
    best, *others = known
    if not 0.5 < best < 1:
        return best
    log_odds = _logit(best) + shared * sum(_logit(min(one, CAP)) for one in others if one > 0.5)
    return max(best, min(CAP, 1 / (1 + math.exp(-log_odds))))


def _logit(share: float) -> float:
    return math.log(share / (1 - share))
