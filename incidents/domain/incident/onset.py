"""Since when an incident lasts, and whether a change that was reported can be its cause.

A change is tested on three grounds, each with its figures:

- Order: a cause comes before its effect. The onset is an interval, so the order may be unknown.
- Control: of the components that were changed more shifted than of those that were not, by Fisher's exact test.
- Dose: components that were changed earlier shifted earlier, by Kendall's rank test (exact, from four components on).

A change that merely happened to come before is told from a cause by its lag: `coincidence` is the probability that one
of the changes of what failed lies within the lag before a moment chosen by chance, at the rate that it is changed at.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, Literal

from incidents.domain.values import parse_rfc3339

Verdict = Literal["supported", "contradicted", "cannot be tested"]
Source = Literal["metrics", "analyzer", "alert", "opened"]

SHIFTS, STEADY = "Onsets", "Components without a change"
"""Tables of the verdicts of `changepoint`."""
SIGNIFICANT = 0.05
RESOLUTION = timedelta(minutes=1)
"""Onsets are dated in slices of a minute: a change within the slice comes before it."""
AROUND = timedelta(minutes=15)
"""Shifts up to so long after the onset belong to it."""
LEAST_CONTROLS = 3
LEAST_RANKED = 4
NOTHING_FAILED = "nothing has failed yet"
_ALIKE = 0.5
"""Components that were not changed behave alike from this share of those that were on."""


@dataclass(frozen=True, slots=True)
class Onset:
    """Onset: by `at`, between `low` and `high`. Without `low` only the latest moment is known.

    `detail` says what showed it, `source` what kind of record that is, and `interval` what `low` rests on: 95 % from
    metrics, else the latest earlier moment at which the same source saw no failure. With `forecast` nothing has failed:
    the moment is that of the record.
    """

    at: datetime
    low: datetime | None
    high: datetime
    source: Source
    detail: str
    interval: str = ""
    forecast: bool = False


@dataclass(frozen=True, slots=True)
class LastGood:
    """Latest moment before the first record at which its source saw no failure, None without one; in words."""

    at: datetime | None
    detail: str


@dataclass(frozen=True, slots=True)
class MetricOnset:
    """A metric of a component shifted by `shift` standard deviations, between `low` and `high` (95 %)."""

    component: str
    metric: str
    low: datetime
    at: datetime
    high: datetime
    shift: float


@dataclass(frozen=True, slots=True)
class MetricShifts:
    """Shifts of metrics by one analysis, and the components without one; `extent` is how much it judged, in words."""

    shifts: tuple[MetricOnset, ...] = ()
    steady: frozenset[str] = frozenset()
    extent: str = "no run of changepoint covers the opening."

    def of(self, components: Sequence[str]) -> MetricOnset | None:
        """The earliest shift of any of the components."""
        found = [one for one in self.shifts if one.component in components]
        return min(found, key=lambda one: (one.at, one.high, one.metric)) if found else None


@dataclass(frozen=True, slots=True)
class ChangeTest:
    """`reasons` are sentences with the figures, the deciding one first. Shares are (shifted, judged), of what was
    changed and of what was not; p-values are None where that ground cannot be tested."""

    verdict: Verdict
    reasons: tuple[str, ...]
    lag_seconds: float | None = None
    coincidence: float | None = None
    changed: tuple[int, int] = (0, 0)
    control: tuple[int, int] = (0, 0)
    control_p: float | None = None
    dose_p: float | None = None


def shifts_in(verdict: Mapping[str, Any]) -> MetricShifts:
    """The shifts and the steady components that a verdict of `changepoint` lists."""
    tables = {one["title"]: one["rows"] for one in verdict["evidence"] if one["kind"] == "table"}
    return MetricShifts(
        tuple(
            MetricOnset(
                row[0], row[1], parse_rfc3339(row[2]), parse_rfc3339(row[3]), parse_rfc3339(row[4]), row[8]
            )
            for row in tables.get(SHIFTS, ())
        ),
        frozenset(row[0] for row in tables.get(STEADY, ())),
        _extent(verdict["measures"], verdict["reason"]),
    )


def _extent(measures: Mapping[str, Any], reason: str | None) -> str:
    """Number of series and components that a run of `changepoint` judged; without any, its reason with the figures."""
    series = measures.get("series", 0)
    judged = series - measures.get("series_not_judged", 0)
    if not judged and reason:
        return f"changepoint judged 0 of {series} series: {reason}"
    return f"changepoint judged {judged} of {series} series of {measures.get('components', 0)} components."


def onset(
    causes: Sequence[str],
    shifts: MetricShifts,
    failing_since: datetime | None,
    first_alert: datetime | None,
    opened_at: datetime,
) -> Onset:
    """Of metrics of the causes where one shifted before the incident opened, else of the first failing row, the first
    alert, or the opening: then without a beginning, which `bounded` adds."""
    shift = shifts.of(causes)
    if shift is not None and shift.low <= opened_at:
        detail = f"{shift.metric} of {shift.component}"
        return Onset(shift.at, shift.low, shift.high, "metrics", detail, "95 % interval of changepoint")
    if failing_since is not None and (first_alert is None or failing_since <= first_alert):
        return Onset(failing_since, None, failing_since, "analyzer", "first failing row of a run")
    if first_alert is not None:
        return Onset(first_alert, None, first_alert, "alert", "first alert")
    return Onset(opened_at, None, opened_at, "opened", "incident opened")


def bounded(began: Onset, good: LastGood) -> Onset:
    """An onset without metrics, from the last good moment on."""
    low = None if good.at is None else min(good.at, began.high)
    return replace(began, low=low, interval=good.detail)


def of_forecast(began: Onset) -> Onset:
    """The onset of an incident in which nothing has failed: metrics may have shifted, a failure has not begun."""
    if began.source == "metrics":
        return replace(began, forecast=True)
    return replace(began, low=None, detail="forecast", interval=NOTHING_FAILED, forecast=True)


def judge_change(
    changed_at: Mapping[str, datetime], began: Onset, shifts: MetricShifts, per_hour: float
) -> ChangeTest:
    """The test of a change that was made to components at these moments (one, or a rollout); `per_hour` is the rate at
    which what failed is changed."""
    at = min(changed_at.values())
    if began.high < at:
        what = "forecast" if began.forecast and began.source != "metrics" else "onset"
        late = _span(at - began.high)
        return ChangeTest("contradicted", (f"The {what} is over {late} before the change.",))
    if began.source != "metrics" or began.low is None or began.low < at - RESOLUTION:
        return ChangeTest("cannot be tested", _order_unknown(began, at, changed_at, shifts))
    lag = max(began.at - at, timedelta())
    coincidence = 1 - math.exp(-per_hour * max(lag, RESOLUTION).total_seconds() / 3600)
    moved = {
        one.component for one in shifts.shifts if at - RESOLUTION <= one.at and one.low <= began.high + AROUND
    }
    judged = {one.component for one in shifts.shifts} | shifts.steady
    targets, others = judged & changed_at.keys(), judged - changed_at.keys()
    changed, control = (len(targets & moved), len(targets)), (len(others & moved), len(others))
    control_p = fisher(*changed, *control) if targets and len(others) >= LEAST_CONTROLS else None
    dose_p = _dose(changed_at, shifts)
    order = f"The onset is {_span(lag)} after the change; by chance with a probability of {coincidence:.2g}."
    ranked = _moments(changed_at, shifts)
    sentences = (order, *_compared(changed, control, control_p), *_ranked(dose_p, ranked))
    verdict, why = _decided(changed, control, control_p, dose_p, coincidence, ranked)
    return ChangeTest(
        verdict,
        (why, *sentences),
        lag.total_seconds(),
        coincidence,
        changed,
        control,
        control_p,
        dose_p,
    )


def _decided(
    changed: tuple[int, int],
    control: tuple[int, int],
    control_p: float | None,
    dose_p: float | None,
    coincidence: float,
    ranked: int,
) -> tuple[Verdict, str]:
    if control_p is not None and changed[0] and control[0] >= LEAST_CONTROLS and _is_alike(changed, control):
        return "contradicted", "Unchanged components behave alike."
    if changed[1] >= LEAST_CONTROLS and _at_most(changed) < _ALIKE:
        return "contradicted", "Most changed components did not shift."
    if coincidence > SIGNIFICANT:
        return (
            "cannot be tested",
            f"The change may precede the onset by chance: p {coincidence:.2g}, at most {SIGNIFICANT} needed.",
        )
    if any(p is not None and p <= SIGNIFICANT for p in (control_p, dose_p)):
        return (
            "supported",
            "The change came shortly before, and changed components differ from unchanged ones.",
        )
    return "cannot be tested", _missing(changed, control, control_p, ranked)


def _missing(changed: tuple[int, int], control: tuple[int, int], control_p: float | None, ranked: int) -> str:
    """Numbers that control and dose had, with those that they need."""
    dose = f"order of a rollout: {ranked} of the {LEAST_RANKED} moments needed"
    if not changed[1]:
        return f"No changed component has metrics to compare with; {dose}."
    if control_p is None:
        found = f"{control[1]} of the {LEAST_CONTROLS} unchanged components needed"
        return f"Too few components with metrics to compare with: {found}; {dose}."
    limit = f"p {control_p:.2g}, at most {SIGNIFICANT} needed"
    return f"Changed and unchanged components differ too little: {limit}; {dose}."


def _is_alike(changed: tuple[int, int], control: tuple[int, int]) -> bool:
    return control[0] * changed[1] >= _ALIKE * changed[0] * control[1]


def _at_most(share: tuple[int, int]) -> float:
    """Upper end of the one-sided 95 % interval of a share (Clopper and Pearson), by bisection."""
    hits, of = share
    low, high = hits / of, 1.0
    for _ in range(30):
        middle = (low + high) / 2
        below = sum(math.comb(of, k) * middle**k * (1 - middle) ** (of - k) for k in range(hits + 1))
        low, high = (middle, high) if below > SIGNIFICANT else (low, middle)
    return high


def fisher(hits: int, of: int, other_hits: int, others: int) -> float:
    """Probability of at least so many hits among `of`, if all have the same chance (Fisher's exact test, one-sided)."""
    every, total = hits + other_hits, of + others
    ways = sum(math.comb(of, k) * math.comb(others, every - k) for k in range(hits, min(of, every) + 1))
    return ways / math.comb(total, every)


def _pairs(changed_at: Mapping[str, datetime], shifts: MetricShifts) -> list[tuple[datetime, datetime]]:
    """Moment of the change and of the onset, of each changed component that shifted."""
    return [(at, one.at) for name, at in changed_at.items() if (one := shifts.of((name,))) is not None]


def _moments(changed_at: Mapping[str, datetime], shifts: MetricShifts) -> int:
    """Different moments at which components were changed that shifted."""
    return len({at for at, _ in _pairs(changed_at, shifts)})


def _dose(changed_at: Mapping[str, datetime], shifts: MetricShifts) -> float | None:
    """One-sided p of the ranks of changes and of onsets agreeing by chance; None with few or with ties only."""
    pairs = _pairs(changed_at, shifts)
    if _moments(changed_at, shifts) < LEAST_RANKED:
        return None
    swapped = sum(
        (a - b).total_seconds() * (x - y).total_seconds() <= 0
        for n, (a, x) in enumerate(pairs)
        for b, y in pairs[:n]
    )
    return _as_few_swaps(len(pairs), swapped)


def _as_few_swaps(size: int, most: int) -> float:
    """Share of the orders of `size` things that have at most so many pairs swapped."""
    counts = [1]
    for n in range(2, size + 1):
        counts = [sum(counts[max(0, k - n + 1) : k + 1]) for k in range(len(counts) + n - 1)]
    return sum(counts[: most + 1]) / math.factorial(size)


def _order_unknown(
    began: Onset, at: datetime, changed_at: Mapping[str, datetime], shifts: MetricShifts
) -> tuple[str, ...]:
    """Reasons for an unknown order of change and onset, with the figures of both and of the metrics."""
    after = _span(began.high - at)
    latest = f"The forecast was made {after} after the change."
    if not began.forecast:
        known = "" if began.low is None else f" It lies within {_span(began.high - began.low)}."
        latest = f"The onset is at most {after} after the change.{known}"
    if began.source != "metrics":
        judged = ({one.component for one in shifts.shifts} | shifts.steady) & changed_at.keys()
        counted = f"Changed components with metrics: {len(judged)} of {len(changed_at)}."
        return f"No metric of the failed component shows the onset: {shifts.extent}", latest, counted
    low = began.low or began.at
    within = f"The change lies within the interval of the onset: {_span(at - low)} after its beginning, "
    return f"{within}{_span(began.high - at)} before its end.", shifts.extent


def _compared(changed: tuple[int, int], control: tuple[int, int], p: float | None) -> tuple[str, ...]:
    if not changed[1] and not control[1]:
        return ()
    sentence = (
        f"{changed[0]} of {changed[1]} changed components with metrics shifted, "
        f"{control[0]} of {control[1]} others"
    )
    return (sentence + (f" (p {p:.2g})." if p is not None else "."),)


def _ranked(p: float | None, ranked: int) -> tuple[str, ...]:
    if p is None:
        return ()
    return (f"Components changed earlier shifted earlier (p {p:.2g}, {ranked} moments).",)


def _span(span: timedelta) -> str:
    seconds = span.total_seconds()
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"
