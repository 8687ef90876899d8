"""Accuracy of the availability calculators: intervals that hold the truth, culprits named, nobody else named.

python -m tests.benchmarks.availability [--trials N] [--first SEED]

Every trial is a fresh month. Figures use seeds from `FIRST_REPORTING_SEED` on, which nothing was tuned on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from analyzers.builtin.availability import ANALYZER as AVAILABILITY
from analyzers.builtin.colocation import ANALYZER as COLOCATION
from analyzers.builtin.stats.nines import MONTH_MINUTES
from analyzers.builtin.stats.probability import wilson
from analyzers.builtin.tor_availability import ANALYZER as TOR_AVAILABILITY
from analyzers.builtin.tor_availability.analysis import class_component
from analyzers.contract import Analyzer, Verdict, Window, check_params
from analyzers.simulators import outages, uptimes
from analyzers.simulators.deepview import FIRST_REPORTING_SEED
from tests.benchmarks.glance import counts, told
from tests.benchmarks.growth import peak_memory
from tests.benchmarks.scoring import Tally, note_of, spread, windows_row, windows_until
from tests.benchmarks.script import script
from tests.benchmarks.worlds import reliability

Row = dict[str, Any]

CLASS = outages.Class(devices=5000, monthly=0.004)
"""Twenty outages a month, 18 soft and 2 hard ones on average."""
MEAN_MINUTES = 30.0

OFTEN = "units that fail 40 times as often"
BATCHED = "a bad batch of 8 of 128"
TALK = "no accuracy: a method of the talk"
CLUMPED = uptimes.Month(units=3000, clumped=0.5)


@dataclass(frozen=True)
class Job:
    seed: int
    kind: str


@dataclass(frozen=True)
class Seen:
    """One month: whether the interval holds the truth, what else was measured, who was named, and what was stated of
    each suspect with whether it was right.
    """

    held: bool
    value: float
    other: float
    tally: Tally
    stated: tuple[tuple[float, bool], ...] = ()


def judged(analyzer: Analyzer, window: Window, **params: object) -> Verdict:
    return analyzer.analyze(window, check_params(analyzer, params))


def tally_of(verdict: Verdict, truth: set[str]) -> Tally:
    """Tally of who was named against who should have been, and whether the verdict abstains."""
    tally = Tally.of([suspect.component for suspect in verdict.suspects], truth)
    tally.undecided = int(verdict.status == "inconclusive")
    return tally


def stated_of(verdict: Verdict, truth: frozenset[str]) -> tuple[tuple[float, bool], ...]:
    return tuple(
        (one.score, not truth.isdisjoint({one.component, *one.ambiguous_with}))
        for one in verdict.suspects
        if one.score is not None
    )


def run(job: Job) -> Seen:
    return RUNS[job.kind](job.seed)


def class_interval(seed: int) -> Seen:
    """The availability of a class at known rates."""
    record = outages.draw(CLASS, seed)
    measures = judged(TOR_AVAILABILITY, outages.window_of(record)).measures
    truth = 1 - CLASS.monthly * MEAN_MINUTES / MONTH_MINUTES
    held = (measures["low"] or 0.0) <= truth <= measures["high"]
    return Seen(bool(held), float(measures["availability"]), truth, Tally())


def batch(seed: int) -> Seen:
    record = outages.draw(outages.BATCH, seed)
    verdict = judged(TOR_AVAILABILITY, outages.window_of(record))
    truth = {name for name in record.culprits if _went_out(record, name)}
    # A class of 128 at this rate misses six nines without its batch, too: that the class is named is no false blame.
    devices = tuple(one for one in verdict.suspects if one.component != class_component("tor"))
    stated = stated_of(verdict, frozenset({*record.culprits, class_component("tor")}))
    return Seen(True, 0.0, 0.0, tally_of(replace(verdict, suspects=devices), truth), stated)


WEEK, WATCHED = 7, 21
"""Days of a window, and for how long after the roll-out of bad firmware one ends every day."""


def until_ticket(job: Job) -> list[int | None]:
    """For each device with bad firmware the days from its roll-out until an incident, by windows of a week
    every day.
    """
    calm = outages.draw(replace(outages.BATCH, batch=0, days=WEEK), job.seed)
    after = outages.draw(replace(outages.BATCH, days=WATCHED), job.seed)
    late = WEEK * 1440.0
    seen: dict[str, list[tuple[bool, bool]]] = {name: [] for name in after.culprits}
    before = [replace(one, end=late if one.end is None else one.end) for one in calm.outages]
    moved = [
        replace(one, start=one.start + late, end=None if one.end is None else one.end + late)
        for one in after.outages
    ]
    for day in range(1, WATCHED + 1):
        low, high = day * 1440.0, (day + WEEK) * 1440.0
        kept = [
            replace(one, start=one.start - low, end=None if ends >= high else ends - low)
            for one in (*before, *moved)
            for ends in (math.inf if one.end is None else one.end,)
            if one.start < high and ends > low
        ]
        week = replace(after, shape=replace(after.shape, days=WEEK), outages=tuple(kept))
        named = {
            one.component: one.sure for one in judged(TOR_AVAILABILITY, outages.window_of(week)).suspects
        }
        for name, found in seen.items():
            found.append((name in named, named.get(name, False)))
    return [windows_until(found) for found in seen.values()]


def until_named(job: Job) -> list[int | None]:
    """For each unit that fails often from one day on the days until an incident, by windows of 30 days every day."""
    month = uptimes.Month(units=1500, bad=3)
    calm, after = uptimes.draw(replace(month, bad=0), job.seed), uptimes.draw(month, job.seed)
    late = month.days * 1440.0
    rows = [*zip(*_columns(uptimes.table_of(calm), 0.0), strict=True)]
    rows += zip(*_columns(uptimes.table_of(after), late), strict=True)
    seen: dict[str, list[tuple[bool, bool]]] = {name: [] for name in after.culprits}
    for day in range(1, month.days + 1):
        low, high = day * 1440.0, day * 1440.0 + late
        kept = [
            (unit, max(start, low) - low, min(end, high) - low, *rest)
            for unit, start, end, *rest in rows
            if start < high and end > low
        ]
        told = uptimes.Table(*(list(column) for column in zip(*kept, strict=True)))
        named = {
            one.component: one.sure for one in judged(AVAILABILITY, uptimes.window_of(after, told)).suspects
        }
        for name, found in seen.items():
            found.append((name in named, named.get(name, False)))
    return [windows_until(found) for found in seen.values()]


def _columns(table: uptimes.Table, by: float) -> tuple[Sequence[Any], ...]:
    start, end = ([one + by for one in column] for column in (table.start, table.end))
    return table.unit, start, end, table.state, table.cause, table.placed


def _went_out(record: outages.Record, name: str) -> bool:
    """A device with bad firmware that was out twice or more: once, nothing tells it from the others."""
    device = record.names.index(name)
    starts = [one.start for one in record.outages if one.device == device and not one.planned]
    return (
        sum(later - earlier > 30 for earlier, later in zip([-math.inf, *starts], starts, strict=False)) >= 2
    )


def healthy_class(seed: int) -> Seen:
    """A class that meets its requirement by far: who is named is named wrongly."""
    record = outages.draw(replace(outages.HEALTHY, devices=5000, monthly=0.0002), seed)
    verdict = judged(TOR_AVAILABILITY, outages.window_of(record))
    return Seen(True, 0.0, 0.0, tally_of(verdict, set()), stated_of(verdict, frozenset()))


def far_and_near(month: uptimes.Month) -> Callable[[int], Seen]:
    def trial(seed: int) -> Seen:
        measures = judged(COLOCATION, uptimes.window_of(uptimes.draw(month, seed))).measures
        near = measures["near_failures"] / measures["near_unit_days"]
        bare = measures["far_failures"] / measures["far_unit_days"] / near - 1
        held = measures["low"] <= month.farther <= measures["high"]
        return Seen(bool(held), float(measures["ratio"]), float(bare), Tally())

    return trial


def bad_units(seed: int) -> Seen:
    life = uptimes.draw(uptimes.Month(units=1500, bad=3), seed)
    return Seen(True, 0.0, 0.0, tally_of(judged(AVAILABILITY, uptimes.window_of(life)), set(life.culprits)))


def healthy_units(seed: int) -> Seen:
    """All units are alike and meet three nines on average: who is named is named by chance."""
    life = uptimes.draw(uptimes.Month(units=1500, farther=0.0), seed)
    return Seen(True, 0.0, 0.0, tally_of(judged(AVAILABILITY, uptimes.window_of(life)), set()))


RUNS: dict[str, Callable[[int], Seen]] = {
    "class": class_interval,
    "batch": batch,
    "healthy class": healthy_class,
    "independent": far_and_near(uptimes.Month(units=3000)),
    "clumped": far_and_near(CLUMPED),
    "bad units": bad_units,
    "healthy units": healthy_units,
}


def months(kind: str, trials: int, first: int) -> list[Seen]:
    return spread(run, [Job(first + n, kind) for n in range(trials)])


def share(name: str, hits: int, trials: int, bar: str | None, note: str = "") -> Row:
    low, high = wilson(hits, trials)
    text = f"[{low:.3f}, {high:.3f}], {trials} months{note}"
    return {
        "name": name,
        "value": round(hits / trials, 4),
        "unit": "",
        "bar": bar,
        "interval": [low, high],
        "note": text,
    }


def figures(trials: int, first: int) -> Iterator[Row]:
    seen = months("class", trials, first)
    yield share(
        "tor_availability: 95 % interval holds the truth", sum(one.held for one in seen), trials, None
    )
    batches = months("batch", trials, first)
    tally = _sum(batches)
    yield {
        "name": "tor_availability: bad batch of 8, F1",
        "value": round(tally.f1, 4),
        "unit": "",
        "bar": None,
        "note": note_of(tally) + ", of those out at least twice",
        **told("tor_availability", BATCHED, **counts(tally), published=TALK),
    }
    jobs = [Job(first + n, "until") for n in range(max(10, trials // 10))]
    taken = [one for found in spread(until_ticket, jobs) for one in found]
    row = windows_row("tor_availability: bad batch of 8, days until an incident", taken, "days")
    never = sum(one is None for one in taken)
    days = told(
        "tor_availability", BATCHED, time=f"{row['value']} days; {never} of {len(taken)} in none of {WATCHED}"
    )
    yield row | days
    calm_months = months("healthy class", trials, first)
    tally = _sum(calm_months)
    stated = [pair for one in (*batches, *calm_months) for pair in one.stated]
    yield from reliability("tor_availability, simulator", stated, of="tor_availability")
    calm = told(
        "tor_availability", healthy=[tally.accused, trials], healthy_undecided=[tally.undecided, trials]
    )
    yield (
        share("tor_availability: healthy months that accuse someone", tally.accused, trials, "<= 0.05") | calm
    )
    for kind in ("independent", "clumped"):
        seen = months(kind, max(10, trials // 2), first)
        ours, bare = (np.array([getattr(one, field) for one in seen]) for field in ("value", "other"))
        note = f", mean {ours.mean():+.3f} (planted +0.114; published 11.4 %), scatter {ours.std():.3f}; bare ratio "
        note += f"{bare.mean():+.3f}, scatter {bare.std():.3f}"
        held = sum(one.held for one in seen)
        row = share(f"colocation, {kind}: 95 % interval holds the truth", held, len(seen), ">= 0.9", note)
        text = f"11.4 % (production); ours {ours.mean():.1%} where 11.4 % is planted, the bare ratio {bare.mean():.1%}"
        yield row | told("colocation", f"{kind} failures", recall=[held, len(seen)], published=text)
    tally = _sum(months("bad units", max(10, trials // 2), first))
    name = "availability: units that fail 40 times as often, F1"
    shown = told("availability", OFTEN, **counts(tally), published=TALK)
    yield {
        "name": name,
        "value": round(tally.f1, 4),
        "unit": "",
        "bar": None,
        "note": note_of(tally),
        **shown,
    }
    jobs = [Job(first + n, "until named") for n in range(max(4, trials // 20))]
    taken = [one for found in spread(until_named, jobs) for one in found]
    row = windows_row(
        "availability: units that fail 40 times as often, days until an incident", taken, "days"
    )
    yield row | told(
        "availability", OFTEN, time=f"{row['value']} days; {taken.count(None)} of {len(taken)} in none of 30"
    )
    tally = _sum(months("healthy units", max(10, trials // 2), first))
    note = f"; {tally.false} of {1500 * tally.windows} units"
    accused, undecided = ([hits, tally.windows] for hits in (tally.accused, tally.undecided))
    calm = told("availability", healthy=accused, healthy_undecided=undecided)
    yield (
        share("availability: healthy months that accuse someone", tally.accused, tally.windows, None, note)
        | calm
    )
    yield from speed()


def _sum(seen: Sequence[Seen]) -> Tally:
    total = Tally()
    for one in seen:
        total = total.plus(one.tally)
    return total


def speed() -> Iterator[Row]:
    for analyzer, sizes in (
        (AVAILABILITY, (2000, 4000, 8000, 16000)),
        (COLOCATION, (2000, 4000, 8000, 16000)),
    ):
        points = []
        for size in sizes:
            window = uptimes.window_of(uptimes.draw(uptimes.Month(units=size), 1))
            points.append((window.sums["uptimes"].rows, min(_timed(analyzer, window) for _ in range(4))))
        yield from _growth(analyzer, points, window)
    points = []
    for size in (5000, 10_000, 20_000, 40_000):
        window = outages.window_of(outages.draw(outages.Class(devices=size, monthly=0.5), 1))
        points.append((window.sums["outages"].rows, min(_timed(TOR_AVAILABILITY, window) for _ in range(4))))
    yield from _growth(TOR_AVAILABILITY, points, window)


def _growth(analyzer: Analyzer, points: list[tuple[int, float]], window: Window) -> Iterator[Row]:
    peak = peak_memory(judged, analyzer, window)
    rows, took = points[-1]
    note = f"{rows} rows, peak {peak:.0f} MB"
    yield {"name": f"{analyzer.name}: seconds", "value": round(took, 3), "unit": "s", "note": note}
    x, y = np.log([point[0] for point in points]), np.log([point[1] for point in points])
    exponent = round(float(np.polyfit(x, y, 1)[0]), 2)
    shown = told(
        analyzer.name,
        seconds=f"{took:.2f} ({rows:,} rows)",
        memory=f"{peak:.0f} MB (the same)",
        growth=f"{exponent:.2f} (rows)",
    )
    yield {
        "name": f"{analyzer.name}: growth exponent",
        "value": exponent,
        "unit": "",
        "bar": "<= 1.2",
        **shown,
    }


def _timed(analyzer: Analyzer, window: Window) -> float:
    began = time.process_time()
    judged(analyzer, window)
    return time.process_time() - began


def main(trials: int = 200, first: int = FIRST_REPORTING_SEED) -> list[Row]:
    return list(figures(trials, first))


if __name__ == "__main__":
    script(figures, 200, FIRST_REPORTING_SEED)
