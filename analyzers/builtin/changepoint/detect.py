"""Changes of level in series, each with the credible interval of its onset and what it is held against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.changepoint.series import Observed
from analyzers.builtin.stats.changepoint import (
    Reference,
    RunLengths,
    credible,
    independent_share,
    reference_of,
    run_lengths,
)
from analyzers.contract import Params

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

HAZARD = 1 / 1000
MOST_DEPENDENT = 0.75
"""Correlation of neighbouring samples from which on a series wanders: its levels say nothing, and it is not judged."""
EXCESS = 1.5
"""A new level is further from the usual one than blocks of that length were, times this."""
_USUAL = 0.9
"""Share of blocks that are not further away than what is usual."""
_SEGMENTS = 8
_DAY_SECONDS = 86_400
_AROUND_SECONDS = 1800
"""Distance from the same time of another day within which a level counts as the one of that time."""
_LEAST_IN_SEGMENT = 3
_STEP = 0.5
"""Least share of a new level that is reached at once: what drifts there has no onset."""
BESIDE = 15
"""Columns before and after the onset that say how much is reached at once."""


@dataclass(frozen=True, slots=True)
class Change:
    """One series left its usual level. Columns are those of `Observed`: the new level began between `first` and `last`
    (95 %), most probably by `at`, and lasted until `end`, the number of columns if it still does. `before` and `after`
    are medians in units of the metric, `shift` is their distance in standard deviations, `evidence` log odds less the
    logarithm of how many series were judged.
    """

    series: int
    first: int
    at: int
    last: int
    end: int
    before: float
    after: float
    shift: float
    evidence: float


@dataclass(frozen=True, slots=True)
class Detected:
    """`judged` are the series with enough samples; `daily` are changes to a level that was there a day before, and
    `drifts` those without a step."""

    judged: Ints
    changes: tuple[Change, ...]
    daily: tuple[Change, ...]
    drifts: tuple[Change, ...]
    rho: Floats


@dataclass(frozen=True, slots=True)
class Prepared:
    """Series that can be judged, in units of their reference; `logarithm` says which were made logarithms."""

    judged: Ints
    scaled: Floats
    usual: Reference
    first: int


def detect(seen: Observed, params: Params) -> Detected:
    prepared = prepare(seen, int(params["least_samples"]))
    judged = prepared.judged
    if not len(judged):
        return Detected(judged, (), (), (), np.empty(0))
    settled = max(_LEAST_IN_SEGMENT, seen.columns(float(params["persist_seconds"])))
    inside = prepared.scaled[:, seen.first :]
    usual = prepared.usual
    found = run_lengths(inside, usual.rho, usual.samples, hazard=HAZARD, settled=settled)
    bar = float(params["named_from"]) + float(np.log(len(judged)))
    possible = np.flatnonzero(found.odds.max(axis=1, initial=-np.inf) >= bar)
    groups = [
        (at, group)
        for at in possible.tolist()
        if (group := _group(seen, prepared, found, at, settled, float(params["least_shift"]))) is not None
    ]
    changes, daily, drifts = list[Change](), list[Change](), list[Change]()
    for one in _dated(seen, prepared, found, groups):
        if one.evidence < float(params["named_from"]):
            continue
        if _was_there_before(seen, prepared, one):
            daily.append(one)
        else:
            (changes if _is_a_step(prepared, one) else drifts).append(one)
    return Detected(judged, tuple(changes), tuple(daily), tuple(drifts), usual.rho)


def prepare(seen: Observed, least: int) -> Prepared:
    """Series with `least` samples before what is searched, and that do not wander."""
    there = np.isfinite(seen.values)
    enough = there[:, : seen.first].sum(axis=1) >= least
    recent = there[:, seen.now :].sum(axis=1) >= _LEAST_IN_SEGMENT
    judged = np.flatnonzero(enough & recent)
    values = _unskewed(seen.values[judged], seen.first)
    usual = reference_of(values[:, : seen.first])
    scaled = (values - usual.level[:, None]) / usual.scale[:, None]
    stays = usual.rho < MOST_DEPENDENT
    retained = Reference(usual.level[stays], usual.scale[stays], usual.rho[stays], usual.samples[stays])
    return Prepared(judged[stays], scaled[stays], retained, seen.first)


def _unskewed(values: Floats, first: int) -> Floats:
    """Logarithms of series that are positive and whose upper tail is twice as long as the lower."""
    if not len(values):
        return values
    with np.errstate(invalid="ignore"):
        low, middle, high = np.nanquantile(values[:, :first], [0.1, 0.5, 0.9], axis=1)
        tailed = (np.nanmin(values, axis=1) > 0) & (high - middle > 2 * (middle - low)) & (high > middle)
    found = values.copy()
    found[tailed] = np.log(values[tailed])
    return found


_Group = tuple[int, int, int]
"""First column of a new level, last column of its first segment, and the column after its end; in searched columns."""


def _group(
    seen: Observed, prepared: Prepared, found: RunLengths, at: int, settled: int, least: float
) -> _Group | None:
    """The latest stretch of segments on one side of the usual level that reaches into the window."""
    values = prepared.scaled[at, prepared.first :]
    segments = list[tuple[int, int]]()
    column = len(values) - 1
    while column >= 0 and len(segments) < _SEGMENTS and (start := int(found.start[at, column])) >= 0:
        segments.append((start, column + 1))
        column = start - 1
    group: _Group | None = None
    side = 0.0
    for start, end in segments:
        level = _level(prepared, at, values, start, end, settled, least)
        if group is not None and (np.sign(level) != side or level == 0):
            break
        if level != 0:
            group = (start, end - 1, end if group is None else group[2])
            side = float(np.sign(level))
    if group is None or group[2] + seen.first <= seen.now or group[2] - group[0] < settled:
        return None
    return group


def _level(
    prepared: Prepared, at: int, values: Floats, start: int, end: int, settled: int, least: float
) -> float:
    """The level of a segment in standard deviations, 0 where it is one that the series usually has.

    The standard deviation of few independent samples is uncertain, and the least shift is larger there by twice that.
    """
    samples = values[start:end]
    samples = samples[np.isfinite(samples)]
    if len(samples) < _LEAST_IN_SEGMENT:
        return 0.0
    level = float(np.median(samples))
    known = float(prepared.usual.samples[at] * independent_share(prepared.usual.rho[at]))
    usual = _excursion(prepared.scaled[at, : prepared.first], max(settled, end - start))
    return level if abs(level) >= max(least * (1 + 2 / known**0.5), EXCESS * usual) else 0.0


def _excursion(before: Floats, length: int) -> float:
    """Distance from the usual level of nine tenths of the blocks of such a length."""
    length = max(1, min(length, len(before) // 8))
    blocks = before[len(before) % length :].reshape(-1, length)
    there = np.isfinite(blocks).sum(axis=1) * 2 >= length
    if not there.any():
        return 0.0
    return float(np.quantile(np.abs(np.nanmedian(blocks[there], axis=1)), _USUAL))


def _dated(
    seen: Observed, prepared: Prepared, found: RunLengths, groups: Sequence[tuple[int, _Group]]
) -> list[Change]:
    """Changes with the intervals of their onsets: the posterior as it stood at the end of the first new segment."""
    if not groups:
        return []
    rows = np.array([at for at, _ in groups])
    stops = np.array([stop for _, (_, stop, _) in groups])
    usual = prepared.usual
    again = run_lengths(
        prepared.scaled[rows, seen.first :], usual.rho[rows], usual.samples[rows], hazard=HAZARD, stop=stops
    )
    changes = []
    for place, (at, (start, _, end)) in enumerate(groups):
        first, middle, last = credible(again.beginning[place])
        series = int(prepared.judged[at])
        values = seen.values[series]
        inside = values[seen.first + start : seen.first + end]
        scaled = prepared.scaled[at, seen.first + start : seen.first + end]
        changes.append(
            Change(
                series=series,
                first=_last_sample(values, seen.first + first),
                at=seen.first + middle,
                last=seen.first + last,
                end=seen.first + end,
                before=float(np.nanmedian(values[: seen.first])),
                after=float(np.nanmedian(inside)),
                shift=float(np.nanmedian(scaled)),
                evidence=float(found.odds[at, start:end].max()) - float(np.log(len(prepared.judged))),
            )
        )
    return changes


def _last_sample(values: Floats, column: int) -> int:
    """The last column before `column` that has a sample: where in it the sample was taken is not known, nor what
    happened since; and a rate or a mean tells of the time before it."""
    before = np.flatnonzero(np.isfinite(values[:column]))
    return int(before[-1]) if len(before) else 0


def _was_there_before(seen: Observed, prepared: Prepared, one: Change) -> bool:
    """Whether the series was half as far away at the same time of an earlier day, for as long."""
    day = seen.columns(_DAY_SECONDS)
    around = seen.columns(_AROUND_SECONDS)
    at = int(np.searchsorted(prepared.judged, one.series))
    length = max(1, min(one.end, len(seen.starts)) - one.at)
    for back in range(day, one.at + around + 1, day):
        start, end = max(0, one.at - back - around), one.end - back + around
        block = prepared.scaled[at, start : min(end, seen.first)]
        there = np.sort(block[np.isfinite(block)] * np.sign(one.shift))[::-1][:length]
        if len(there) >= max(1, length // 2) and float(np.median(there)) >= abs(one.shift) / 2:
            return True
    return False


def _is_a_step(prepared: Prepared, one: Change) -> bool:
    """Whether half of the new level is reached within the interval of the onset, beyond what the series moved by in as
    much time before; and whether that is more than it usually moves by from one such block to the next.
    """
    values = prepared.scaled[int(np.searchsorted(prepared.judged, one.series))]
    after = _middle(values[one.last : one.end][:BESIDE])
    before = _middle(values[: one.first][-BESIDE:])
    span = one.last - one.first + BESIDE
    earlier = _middle(values[: max(0, one.first - span)][-BESIDE:])
    drifted = before - earlier if np.isfinite(earlier) else 0.0
    step = (after - before - drifted) * float(np.sign(one.shift))
    return step >= max(_STEP * abs(after), EXCESS * usual_step(values[: prepared.first], span))


def usual_step(before: Floats, span: int) -> float:
    """Difference of medians of blocks from one to the next, in nine of ten."""
    length = max(1, min(span, len(before) // 8))
    blocks = before[len(before) % length :].reshape(-1, length)[:, :BESIDE]
    there = np.isfinite(blocks).any(axis=1)
    if there.sum() < 2:
        return 0.0
    steps = np.abs(np.diff(np.nanmedian(blocks[there], axis=1)))
    return float(np.quantile(steps, _USUAL))


def _middle(values: Floats) -> float:
    there = values[np.isfinite(values)]
    return float(np.median(there)) if len(there) else float("nan")
