"""The fused probability on opinions that share no code with its simulators, beside noisy-or and the loudest opinion.

python -m tests.benchmarks.worlds_fusion [--trials N] [--first SEED]

A trial is one world of each case. Opinions of the same component are fused; what comes to `NAMED` or more is named.
Only `fused` is judged, with neither the topology nor the history of a case.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from analyzers.builtin.stats.probability import wilson
from incidents.domain.incident.state import fused
from tests.benchmarks.scoring import Tally
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Judged, figures, reliability
from tests.worlds.fusion import CASES, STRESS, Moment, make

Row = dict[str, Any]
Scores = dict[str, float]

FIRST = 1000
NAMED = 0.5


def by_component(moment: Moment) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {}
    for one in moment.opinions:
        found.setdefault(one.component, []).append(one.probability)
    return found


def by_rule(moment: Moment) -> Scores:
    return {name: fused(scores) or 0.0 for name, scores in by_component(moment).items()}


def noisy_or(moment: Moment) -> Scores:
    return {name: 1 - math.prod(1 - one for one in scores) for name, scores in by_component(moment).items()}


def loudest(moment: Moment) -> Scores:
    """The one opinion with the highest probability."""
    top = max(moment.opinions, key=lambda one: (one.probability, one.component), default=None)
    return {top.component: top.probability} if top else {}


BASELINES: Mapping[str, Callable[[Moment], Scores]] = MappingProxyType(
    {"noisy-or": noisy_or, "loudest": loudest}
)


def tally(scores: Scores, moment: Moment) -> Tally:
    return Tally.of([name for name, score in scores.items() if score >= NAMED], set(moment.culprits))


def is_first(scores: Scores, moment: Moment) -> bool:
    """Whether the most probable component is at fault."""
    return bool(scores) and max(scores, key=lambda name: (scores[name], name)) in moment.culprits


def judge(moments: Sequence[Moment]) -> Judged:
    judged = Judged(baselines={name: (Tally(), Tally()) for name in BASELINES})
    for moment in moments:
        scores = by_rule(moment)
        judged.stated += [(score, name in moment.culprits) for name, score in scores.items()]
        if moment.culprits:
            judged.faulty = judged.faulty.plus(tally(scores, moment))
        else:
            judged.healthy = judged.healthy.plus(tally(scores, moment))
        for name, method in BASELINES.items():
            faulty, healthy = judged.baselines[name]
            said = tally(method(moment), moment)
            judged.baselines[name] = (
                (faulty.plus(said), healthy) if moment.culprits else (faulty, healthy.plus(said))
            )
    return judged


def rows(trials: int, first: int) -> Iterator[Row]:
    cases: dict[str, Judged] = {}
    usual, stressed = list[tuple[float, bool]](), list[tuple[float, bool]]()
    for case in CASES:
        moments = [moment for n in range(trials) for moment in make(first + n, case).judged]
        cases[case] = judge(moments)
        (stressed if case in STRESS else usual).extend(cases[case].stated)
        if faulty := [moment for moment in moments if moment.culprits]:
            hits = sum(is_first(by_rule(moment), moment) for moment in faulty)
            beside = [
                f"{name} {sum(is_first(method(moment), moment) for moment in faulty) / len(faulty):.3f}"
                for name, method in BASELINES.items()
            ]
            low, high = wilson(hits, len(faulty))
            yield {
                "name": f"fusion: {case} culprit first",
                "value": round(hits / len(faulty), 4),
                "interval": [low, high],
                "note": f"[{low:.3f}, {high:.3f}] of {len(faulty):,}; beside it {', '.join(beside)}",
            }
    yield from figures("fusion", cases, {})
    yield from reliability("fusion, second generator", usual, of="fusion")
    yield from reliability("fusion, under stress", stressed, 0.1, of="fusion", stress=True)


def main(trials: int = 20, first: int = FIRST) -> list[Row]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, 20, FIRST)
