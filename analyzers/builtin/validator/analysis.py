"""Validation of nodes by benchmarks (Xiong et al., USENIX ATC 2024, the system called Anubis or SuperBench).

The fleet says itself what is normal: criteria for each metric are the most typical node's distribution, found by
dropping what is dissimilar until the rest agrees. A node whose distribution is less similar than the parameter asks,
on the worse side, is a gray failure before anyone's job fails on it.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from analyzers.builtin.benchmark_samples import SAMPLES, samples
from analyzers.builtin.directions import words_given
from analyzers.builtin.node_defects import judge
from analyzers.builtin.node_outcome import Charge, Outcome, Rules
from analyzers.builtin.validator import evidence as show
from analyzers.builtin.validator.calibration import probability
from analyzers.builtin.validator.rounds import spans
from analyzers.builtin.words import count, figure
from analyzers.contract import Analyzer, Input, Param, Params, Suspect, Verdict, Window, inconclusive, quiet

PARAMS = (
    Param(
        "similarity",
        0.95,
        "least similarity of a node's results to the fleet's criteria; .95 is 5 % slower in every run",
        low=0.5,
        high=0.999,
    ),
    Param("min_nodes", 3, "least nodes of one kind from which criteria are learnt", low=3, high=100_000),
    Param(
        "spreads",
        4.0,
        "a node must also be worse by this many times the spread of healthy nodes",
        low=0,
        high=100,
    ),
    Param(
        "most_failing",
        0.2,
        "if a larger share of the nodes is unlike the others, the fleet is split and no node is blamed",
        low=0.01,
        high=0.5,
    ),
    Param(
        "most_false",
        0.02,
        "share of the blamed that may be healthy by chance, and of healthy fleets in which anyone is blamed",
        low=0.0001,
        high=1,
    ),
    Param("higher", "", "words of metrics that are worse when they fall, such as qps, beside the known"),
    Param("lower", "", "words of metrics that are worse when they rise, beside the known"),
)

HISTORY = 3
SURE = 0.9


def analyze(window: Window, params: Params) -> Verdict:
    outcome = validate(window, params)
    measures = _measures(outcome, window)
    if outcome.nodes == 0:
        return inconclusive("No benchmark was run in this window.", measures)
    if not outcome.charges:
        reason = _undecided(outcome)
        if reason is not None:
            return Verdict("inconclusive", (), reason, measures, show.of_the_unjudged(outcome))
        return quiet(measures, show.of_the_quiet(outcome, params))
    return Verdict("named", _suspects(outcome, window), None, measures, show.of_the_blamed(outcome, params))


def validate(window: Window, params: Params) -> Outcome:
    """Judge the nodes that were measured in the window, by `PARAMS`."""
    rules = Rules(
        float(params["similarity"]),
        float(params["spreads"]),
        int(params["min_nodes"]),
        float(params["most_failing"]),
        float(params["most_false"]),
        words_given(str(params["higher"])),
        words_given(str(params["lower"])),
    )
    past = [samples(one.sums["samples"]) for one in reversed(window.history)]
    return judge(samples(window.sums["samples"]), past, rules)


def _measures(outcome: Outcome, window: Window) -> dict[str, Any]:
    why = Counter(one.why for one in outcome.unjudged)
    return {
        "nodes": outcome.nodes,
        "metrics": len(outcome.judged) + len(outcome.unjudged),
        "judged": len(outcome.judged),
        "split": why["split"],
        "too_few": why["few"],
        "unknown_direction": why["direction"],
        "unrepeatable": why["repeatability"],
        "failing": len(outcome.charges),
        "history": len(window.history),
    }


def _undecided(outcome: Outcome) -> str | None:
    """Why nobody can be cleared although nobody is blamed, or None."""
    split = [one for one in outcome.unjudged if one.why == "split"]
    if split:
        more = f" (and {len(split) - 1} more)" if len(split) > 1 else ""
        return f"{split[0].stratum.shown}: {split[0].reason}{more}."
    if not outcome.judged:
        first = outcome.unjudged[0]
        more = (
            f" None of {len(outcome.unjudged)} metrics could be judged." if len(outcome.unjudged) > 1 else ""
        )
        return f"{first.stratum.shown}: {first.reason}.{more}"
    return None


def _suspects(outcome: Outcome, window: Window) -> tuple[Suspect, ...]:
    when = spans(window.sums["samples"], outcome.charges)
    suspects = []
    for charge in outcome.charges:
        tested = charge.failures[0].judged.criteria is None
        score = None if tested else probability(charge.by_chance)  # simulations say nothing of failed tests
        first, last = when.get(charge.node, (None, None))
        suspects.append(
            Suspect(
                component=charge.node,
                score=score,
                summary=f"{charge.node} {_said(charge)}.",
                sure=score is None or score >= SURE,
                first_failure=first,
                last_failure=last,
                says=_said(charge),
            )
        )
    return tuple(suspects)


def _said(charge: Charge) -> str:
    """What is wrong, as the end of a sentence that begins with the node."""
    worst = charge.failures[0]
    others = len(charge.failures) - 1
    more = f", and fails {count(others)} other metric{'s' if others > 1 else ''}" if others else ""
    name = worst.judged.stratum.shown
    if worst.judged.criteria is None:
        return f"fails {name} ({figure(float(worst.judged.means[worst.at]))} instead of 0){more}"
    usual, mean = worst.judged.criteria.scale, float(worst.judged.means[worst.at])
    return f"is {show.change(mean, usual)} than the fleet in {name} ({figure(mean)} instead of {figure(usual)}){more}"


ANALYZER = Analyzer(
    name="validator",
    version="1.2.1",
    title="Names nodes whose benchmark results are worse than the fleet's own criteria",
    inputs=(Input("benchmark", (SAMPLES,)),),
    params=PARAMS,
    analyze=analyze,
    history=HISTORY,
)
