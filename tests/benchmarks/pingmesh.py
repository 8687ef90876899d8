"""Accuracy of pingmesh on simulated networks of servers that probe each other: patterns, black holes, alerts.

    python -m tests.benchmarks.pingmesh [--trials N] [--first SEED] [--calibrate] [--param K=V ...]

Windows of ten minutes with 20 probes of a pair: 2,400 servers under 60 ToRs in 3 podsets, and 600 of them for what must
blame nobody. A window is right if its pattern and the components that are named are exactly those planted. Figures use
seeds from `FIRST_REPORTING_SEED` on, which nothing was tuned on. The authors publish no accuracy (Guo et al., SIGCOMM
2015): their alerts are a drop rate above 1e-3 and a P99 above 5 ms, and at most 20 reloads of ToRs a day.
"""

from __future__ import annotations

import argparse
import math
import resource
import time
from collections.abc import Sequence
from typing import Any

from analyzers.builtin.pingmesh import ANALYZER
from analyzers.builtin.pingmesh.verdict import BAR
from analyzers.builtin.stats.probability import wilson
from analyzers.contract import check_params
from analyzers.simulators.deepview import FIRST_REPORTING_SEED
from analyzers.simulators.mesh_windows import BENIGN, MINUTES
from tests.benchmarks.glance import counts, other, told
from tests.benchmarks.pingmesh_trials import (
    HOLES,
    LARGE,
    PATTERNS,
    PUBLISHED_PATTERNS,
    SMALL,
    TINY,
    Done,
    Job,
    run,
    window,
)
from tests.benchmarks.scoring import Tally, monotone, note_of, spread
from tests.benchmarks.worlds import reliability

Row = dict[str, Any]

HOLED = "black holes of ToRs"
PUBLISHED = "no accuracy; alerts above 1e-3 or 5 ms"
WINDOWS_A_DAY = 288
"""A window of ten minutes every five."""


def share(name: str, hits: int, trials: int, bar: str | None = None, note: str = "") -> Row:
    low, high = wilson(hits, trials)
    said = f"{hits} of {trials}, 95 % {low:.3f} to {high:.3f}" + (f"; {note}" if note else "")
    value = round(hits / max(1, trials), 4)
    return {"name": name, "value": value, "unit": "", "bar": bar, "interval": [low, high], "note": said}


def patterns(trials: int, first: int, params: tuple[tuple[str, Any], ...]) -> list[Row]:
    """The bar is for the published patterns; each kind of fault beside it, and the published rule."""
    jobs = [
        Job(first + 1000 * place + trial, kind, params=params, rivals=True)
        for place, kind in enumerate(PATTERNS)
        for trial in range(trials)
    ]
    done = spread(run, jobs)
    of_published = [one for one in done if one.job.kind in PUBLISHED_PATTERNS]
    rows = [
        share(
            "pattern and component right",
            sum(one.right for one in of_published),
            len(of_published),
            ">= 0.98",
        )
    ]
    plain = sum(
        one.plain[0] == PUBLISHED_PATTERNS[one.job.kind] and one.plain[1] == one.truth for one in of_published
    )
    rows.append(share("the same by median P99 alone, as published", plain, len(of_published)))
    for kind in PATTERNS:
        mine = [one for one in done if one.job.kind == kind]
        wrong = sorted({one.pattern for one in mine if not one.right})
        rows.append(share(f"{kind}: right", sum(one.right for one in mine), len(mine), note=", ".join(wrong)))
        tally = _summed([one.tally for one in mine])
        if kind != "healthy":
            value = round(tally.f1, 4)
            rows.append(
                {
                    "name": f"{kind}: F1 of suspects",
                    "value": value,
                    "unit": "",
                    "bar": None,
                    "note": note_of(tally),
                    **told(
                        "pingmesh", _called(kind), **counts(tally), beside=_plain(mine), published=PUBLISHED
                    ),
                }
            )
    rows += _stated("patterns", done)
    late = spread(
        run,
        [
            Job(first + 20_000 + 1000 * place + trial, kind, onset=1 + trial % 4, params=params)
            for place, kind in enumerate(PATTERNS)
            for trial in range(max(1, trials // 3))
            if kind != "healthy"
        ],
    )
    rows.append(share("right, fault from minute 1 to 4 on", sum(one.right for one in late), len(late)))
    return rows


def _stated(what: str, done: Sequence[Done]) -> list[Row]:
    """Probability stated of each suspect, and whether it was right."""
    pairs = [
        (stated, bool(entry & one.truth))
        for one in done
        for stated, entry in zip(one.stated, one.named, strict=True)
    ]
    return list(reliability(f"simulator, {what}", pairs, of="pingmesh"))


def _called(kind: str) -> str:
    return HOLED if kind in HOLES else kind.replace("_", " ")


def _plain(done: Sequence[Done]) -> dict[str, list[int]]:
    """The rule by median P99 on the same windows, if it knows the pattern at all."""
    kinds = {one.job.kind for one in done}
    if not kinds <= set(PUBLISHED_PATTERNS):
        return {}
    return {"median P99": other(_summed([Tally.of(sorted(one.plain[1]), set(one.truth)) for one in done]))}


def black_holes(trials: int, first: int, params: tuple[tuple[str, Any], ...]) -> list[Row]:
    jobs = [
        Job(first + 40_000 + 1000 * place + trial, kind, times=times, params=params, rivals=True)
        for place, (kind, times) in enumerate((("black_hole_1", 1), ("black_hole_2", 1), ("black_hole_1", 3)))
        for trial in range(trials)
    ]
    done = spread(run, jobs)
    rows = []
    for name, bar, mine in (
        (HOLED, ">= 0.95", done),
        ("type 1", None, [one for one in done if one.job.kind == "black_hole_1" and one.job.times == 1]),
        ("type 2", None, [one for one in done if one.job.kind == "black_hole_2"]),
        ("three ToRs at once, type 1", None, [one for one in done if one.job.times == 3]),
    ):
        tally = _summed([one.tally for one in mine])
        low, high = wilson(tally.found, tally.found + tally.false)
        note = f"95 % {low:.3f} to {high:.3f}, F1 {tally.f1:.3f}, {tally.windows} windows"
        row = {"name": f"{name}: precision", "value": round(tally.precision, 4), "bar": bar, "note": note}
        rows.append(row | {"interval": [low, high]})
        low, high = wilson(tally.found, tally.found + tally.missed)
        note = f"95 % {low:.3f} to {high:.3f}"
        row = {"name": f"{name}: recall", "value": round(tally.recall, 4), "bar": bar, "note": note}
        row["interval"] = [low, high]
        plain = _summed([Tally.of(sorted(one.plain_holes), set(one.truth)) for one in mine])
        beside = {"the score alone": other(plain)}
        rows.append(row | (told("pingmesh", name, **counts(tally), beside=beside) if bar else {}))
    plain = _summed([Tally.of(sorted(one.plain_holes), set(one.truth)) for one in done])
    rows.append(
        {"name": "the score alone: precision", "value": round(plain.precision, 4), "note": note_of(plain)}
    )
    rows += _stated("black holes", done)
    leaf = spread(
        run, [Job(first + 50_000 + trial, "leaf_black_hole", params=params) for trial in range(trials)]
    )
    rows.append(
        share("black hole in a Leaf: podset named, no ToR", sum(one.right for one in leaf), len(leaf))
    )
    return rows


def quiet(trials: int, first: int, params: tuple[tuple[str, Any], ...]) -> list[Row]:
    """Healthy windows and the benign suite, over 600 servers."""
    jobs = [
        Job(first + 60_000 + trial, "healthy", SMALL, params=params, rivals=True)
        for trial in range(8 * trials)
    ]
    jobs += [
        Job(first + 70_000 + 1000 * place + trial, event, SMALL, params=params, rivals=True)
        for place, event in enumerate(BENIGN)
        for trial in range(2 * trials)
    ]
    done = spread(run, jobs)
    rows = []
    for kind in ("healthy", *BENIGN):
        mine = [one for one in done if one.job.kind == kind]
        unsure = sum(one.status == "inconclusive" for one in mine)
        note = f"{unsure} inconclusive, {sum(one.alerts > 0 for one in mine)} with an alert"
        bar = "<= 0.05" if kind == "healthy" else None
        accused = sum(bool(one.named) for one in mine)
        row = share(f"{kind}: windows with someone blamed", accused, len(mine), bar, note)
        calm = told("pingmesh", healthy=[accused, len(mine)], healthy_undecided=[unsure, len(mine)])
        rows.append(row | (calm if kind == "healthy" else {}))
    healthy = [one for one in done if one.job.kind == "healthy"]
    for name, count in (
        ("false alerts a day, 600 servers", sum(one.alerts for one in healthy)),
        ("the same by the limits alone", sum(one.plain_alerts for one in healthy)),
    ):
        value = round(count / len(healthy) * WINDOWS_A_DAY, 2)
        rows.append(
            {"name": name, "value": value, "unit": "a day", "note": f"{count} in {len(healthy)} windows"}
        )
    rows += _stated("nothing broken", done)
    false = sum(one.holes for one in done)
    value = round(false / len(done) * WINDOWS_A_DAY, 2)
    note = f"{false} in {len(done)} healthy and benign windows"
    rows.append(
        {"name": "reloads advised for nothing", "value": value, "unit": "a day", "bar": "<= 20", "note": note}
    )
    return rows


def detection(trials: int, first: int, params: tuple[tuple[str, Any], ...]) -> list[Row]:
    """Windows of ten minutes end every five; the fault begins at any minute between two ends."""
    kinds = ("podset_down", "podset_storm", "spine", "tor_drops", "black_hole_1")
    jobs = [
        Job(first + 80_000 + 1000 * place + trial, kind, onset=onset, params=params)
        for place, kind in enumerate(kinds)
        for trial in range(trials)
        for onset in (5 + trial % 5, trial % 5)
    ]
    done = spread(run, jobs)
    rows = []
    for kind in kinds:
        mine = [one for one in done if one.job.kind == kind]
        times = []
        for early, late in zip(mine[::2], mine[1::2], strict=True):
            waits = [
                MINUTES - one.job.onset for one in (early, late) if any(e & one.truth for e in one.named)
            ]
            times.append(min(waits, default=math.inf))
        found = sorted(one for one in times if math.isfinite(one))
        last = found[math.ceil(0.95 * len(found)) - 1] if found else "-"
        note = f"p95 {last} min, {len(found)} of {len(times)} within two windows"
        median = found[len(found) // 2] if found else None
        row = {"name": f"{kind}: time to detect, median", "value": median or 0, "unit": "min", "note": note}
        rows.append(row | told("pingmesh", _called(kind), time=f"{median} min"))
    return rows


def growth(first: int) -> list[Row]:
    sizes: list[tuple[int, float]] = []
    rows: list[Row] = []
    for shape in (SMALL, LARGE, (6, 20, 40), (12, 20, 40)):
        job = Job(first + 90_000, "tor_drops", shape)
        seen, _ = window(job)
        pairs = seen.sums["pairs"].rows
        params = check_params(ANALYZER, {})
        began = time.process_time()
        ANALYZER.analyze(seen, params)
        sizes.append((pairs, time.process_time() - began))
        memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
        servers = math.prod(shape)
        rows.append(
            {
                "name": f"{servers:,} servers, {pairs:,} pairs",
                "value": round(sizes[-1][1], 2),
                "unit": "s of CPU",
                "note": f"peak {memory} MB with the simulation",
            }
        )
    (small, quick), (large, slow) = sizes[1], sizes[-1]
    exponent = math.log(slow / quick) / math.log(large / small)
    row = {"name": "growth exponent in pairs", "value": round(exponent, 2), "unit": "", "bar": "<= 1.2"}
    took, held = f"{slow:.1f} ({large:,} pairs)", f"{memory} MB (the same, and the simulation)"
    rows.append(row | told("pingmesh", seconds=took, memory=held, growth=f"{exponent:.2f} (pairs)"))
    return rows


def calibration(trials: int, first: int = 0) -> list[tuple[float, float]]:
    """Doubtful windows: small networks, few probes, faults that begin late, with benign events beside them or two at
    once, benign events alone, a bar lowered by 3 nats.
    """
    kinds = (*(kind for kind in PATTERNS if kind != "healthy"), *HOLES, *BENIGN, *BENIGN)
    jobs = [
        Job(
            seed=first + 1000 * place + trial,
            kind=kind,
            shape=SMALL if trial % 4 == 0 else TINY,
            onset=trial % 8,
            times=1 + (trial % 5 == 0),
            params=(("alpha", BAR * math.exp(3.0)),),
            tries=(8, 20, 60)[trial % 3],
            event="" if kind in BENIGN else (*BENIGN, "")[trial % (len(BENIGN) + 1)],
        )
        for place, kind in enumerate(kinds)
        for trial in range(trials)
    ]
    pairs = [
        (surplus, bool(entry & one.truth))
        for one in spread(run, jobs)
        for surplus, entry in zip(one.evidence, one.named, strict=True)
    ]
    print(f"{len(pairs)} suspects, {sum(not hit for _, hit in pairs)} wrong")
    return monotone(pairs)


def _summed(tallies: Sequence[Tally]) -> Tally:
    total = Tally()
    for one in tallies:
        total = total.plus(one)
    return total


def figures(trials: int, first: int, params: tuple[tuple[str, Any], ...] = ()) -> list[Row]:
    return [
        *patterns(trials, first, params),
        *black_holes(trials, first, params),
        *quiet(trials, first, params),
        *detection(max(1, trials // 3), first, params),
        *growth(first),
    ]


def main(trials: int = 20) -> list[Row]:
    return figures(trials, FIRST_REPORTING_SEED)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=20)
    parser.add_argument("--first", type=int, default=FIRST_REPORTING_SEED)
    parser.add_argument("--calibrate", action="store_true")
    parser.add_argument("--param", action="append", default=[])
    arguments = parser.parse_args()
    if arguments.calibrate:
        for pair in calibration(arguments.trials):
            print(pair)
    else:
        from tests.benchmarks.__main__ import line

        given = tuple(tuple(text.split("=", 1)) for text in arguments.param)
        for row in figures(arguments.trials, arguments.first, given):
            print(line(row), flush=True)
