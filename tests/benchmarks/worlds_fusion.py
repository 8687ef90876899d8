"""The fused probability on opinions that share no code with its simulators, beside noisy-or and the loudest opinion.

python -m tests.benchmarks.worlds_fusion [--trials N] [--first SEED]

A trial is one world of each case. Opinions of the same component are fused; what comes to `NAMED` or more is named.
Windows of the history are the record that the weight of a dissent is learnt from, as if each disputed blame in them
had been resolved; `without a record` is the same rule with no history. The topology is not used.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from analyzers.builtin.stats.probability import wilson
from incidents.domain.incident.dissent import DisputedBlame, weights
from incidents.domain.incident.state import fused
from tests.benchmarks.scoring import Tally
from tests.benchmarks.script import script
from tests.benchmarks.worlds import Judged, figures, reliability
from tests.worlds.fusion import CASES, STRESS, Moment, Told, make

Row = dict[str, Any]
Scores = dict[str, float]
Rule = Callable[[Moment], Scores]

FIRST = 1000
NAMED = 0.5


def by_component(moment: Moment) -> dict[str, dict[str, float]]:
    """By component what each analyzer that names it states."""
    found: dict[str, dict[str, float]] = {}
    for one in moment.opinions:
        found.setdefault(one.component, {})[one.analyzer] = one.probability
    return found


def learnt(told: Told) -> Rule:
    """The rule of incidents with the record of a world's history. All analyzers judged all components."""
    analyzers = sorted({one.analyzer for moment in told.moments for one in moment.opinions})
    record = [
        DisputedBlame(_kind(name), fused(scores.values()) or 0.0, len(scores) > 1, dissenters, right)
        for moment in told.moments[: told.judged_from]
        for name, scores in by_component(moment).items()
        for right in [name in moment.culprits]
        if (dissenters := tuple(one for one in analyzers if one not in scores))
    ]
    kinds = sorted({_kind(name) for name in (*told.parents, *told.parents.values())})
    against = {
        (kind, several): weights(record, kind, several=several) for kind in kinds for several in (False, True)
    }

    def rule(moment: Moment) -> Scores:
        found: Scores = {}
        for name, scores in by_component(moment).items():
            worth = against[_kind(name), len(scores) > 1]
            dissent = sum(weight for one, weight in worth.items() if one not in scores)
            found[name] = fused(scores.values(), dissent=dissent) or 0.0
        return found

    return rule


def _kind(name: str) -> str:
    return name.partition("/")[0]


def without_record(moment: Moment) -> Scores:
    return {name: fused(scores.values()) or 0.0 for name, scores in by_component(moment).items()}


def noisy_or(moment: Moment) -> Scores:
    return {
        name: 1 - math.prod(1 - one for one in scores.values())
        for name, scores in by_component(moment).items()
    }


def loudest(moment: Moment) -> Scores:
    """The one opinion with the highest probability."""
    top = max(moment.opinions, key=lambda one: (one.probability, one.component), default=None)
    return {top.component: top.probability} if top else {}


BASELINES: Mapping[str, Rule] = MappingProxyType(
    {"without a record": without_record, "noisy-or": noisy_or, "loudest": loudest}
)


def tally(scores: Scores, moment: Moment) -> Tally:
    return Tally.of([name for name, score in scores.items() if score >= NAMED], set(moment.culprits))


def is_first(scores: Scores, moment: Moment) -> bool:
    """Whether the most probable component is at fault."""
    return bool(scores) and max(scores, key=lambda name: (scores[name], name)) in moment.culprits


def judge(worlds: Sequence[tuple[Rule, Sequence[Moment]]]) -> Judged:
    judged = Judged(baselines={name: (Tally(), Tally()) for name in BASELINES})
    for moment, scores in _scored(worlds):
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


def _scored(worlds: Sequence[tuple[Rule, Sequence[Moment]]]) -> Iterator[tuple[Moment, Scores]]:
    for rule, moments in worlds:
        yield from ((moment, rule(moment)) for moment in moments)


def rows(trials: int, first: int) -> Iterator[Row]:
    cases: dict[str, Judged] = {}
    usual, stressed = list[tuple[float, bool]](), list[tuple[float, bool]]()
    for case in CASES:
        worlds = [(learnt(told), told.judged) for told in (make(first + n, case) for n in range(trials))]
        cases[case] = judge(worlds)
        (stressed if case in STRESS else usual).extend(cases[case].stated)
        if faulty := [(moment, scores) for moment, scores in _scored(worlds) if moment.culprits]:
            hits = sum(is_first(scores, moment) for moment, scores in faulty)
            beside = [
                f"{name} {sum(is_first(method(moment), moment) for moment, _ in faulty) / len(faulty):.3f}"
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
