"""Validation of nodes by benchmarks (Xiong et al., USENIX ATC 2024, the system called Anubis or SuperBench).

The fleet says itself what is normal: criteria for each metric are the most typical node's distribution, found by
dropping what is dissimilar until the rest agrees. A node whose distribution is less similar than the parameter asks,
on the worse side, is a gray failure before anyone's job fails on it. How far healthy nodes differ is learnt from the
better half (`tails`), with what is known of other fleets where nodes are few.

Beside the fleet a baseline and rules of SuperBench can be given (`published`). Nodes that are worse in the same way are
one suspect (`node_causes`); nodes whose label is wrong are none (`node_kinds`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any

from analyzers.builtin.benchmark_samples import SAMPLES, samples
from analyzers.builtin.directions import words_given
from analyzers.builtin.node_causes import Cause, causes
from analyzers.builtin.node_defects import judge
from analyzers.builtin.node_outcome import Charge, Outcome, Rules
from analyzers.builtin.validator import evidence as show
from analyzers.builtin.validator.assumptions import assumptions, lowered
from analyzers.builtin.validator.calibration import probability
from analyzers.builtin.validator.placement import PARENTS, parents_of
from analyzers.builtin.validator.published import Violation, check_baseline, check_rules, violations
from analyzers.builtin.validator.rounds import spans
from analyzers.builtin.words import count, figure, so_many
from analyzers.contract import Analyzer, Input, Param, Params, Suspect, Verdict, Window, inconclusive, quiet
from analyzers.superbench.rules import BadRules

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
    Param(
        "baseline",
        "",
        "SuperBench's baseline.json: usual values by metric, which a node may not be worse than by more than "
        "`similarity` allows; with `rules` it is what those refer to",
        check=check_baseline,
    ),
    Param("rules", "", "SuperBench's rule file (YAML): nodes that violate it are named", check=check_rules),
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
    wrong, unusable = _violations(window, params)
    checked = assumptions(outcome, window, unusable)
    found = causes(outcome, parents_of(window))
    if not outcome.charges and not wrong:
        reason = unusable if unusable and not outcome.judged else _undecided(outcome, params)
        if reason is not None:
            return Verdict(
                "inconclusive", (), reason, measures, show.of_the_unjudged(outcome), assumptions=checked
            )
        return quiet(measures, show.of_the_quiet(outcome, params), checked)
    most = lowered(checked)
    suspects = (*_suspects(outcome, found, window, most), *_violating(wrong, outcome))
    evidence = (
        show.of_the_blamed(outcome, found, most, params) if found else show.of_the_quiet(outcome, params),
        show.of_violations(wrong),
    )
    return Verdict("named", suspects, None, measures, (*evidence[1], *evidence[0]), assumptions=checked)


def _violations(window: Window, params: Params) -> tuple[tuple[Violation, ...], str | None]:
    """Who violates the rules and the baseline that are given, and why they cannot be applied."""
    words = words_given(str(params["higher"])), words_given(str(params["lower"]))
    given = str(params["baseline"]), str(params["rules"])
    try:
        measured = samples(window.sums["samples"])
        return violations(measured, *given, float(params["similarity"]), words), None
    except BadRules as error:
        return (), f"The rules cannot be applied: {error}."


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
        "other_kind": len(outcome.other_kind),
        "history": len(window.history),
    }


def _undecided(outcome: Outcome, params: Params) -> str | None:
    """Why nobody can be cleared although nobody is blamed, or None. A baseline or rules clear nodes by themselves."""
    if params["baseline"] or params["rules"]:
        return None
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


def _suspects(
    outcome: Outcome, found: Sequence[Cause], window: Window, lowered_to: float
) -> Iterator[Suspect]:
    """One suspect for each cause; of nodes with a common cause the component that contains them, or the first."""
    when = spans(window.sums["samples"], outcome.charges)
    for cause in found:
        charge = cause.charges[0]
        tested = charge.failures[0].judged.criteria is None
        score = None if tested else min(lowered_to, probability(charge.by_chance))
        component = cause.parent or (cause.nodes[0] if len(cause.nodes) > 1 else charge.node)
        times = [when[node] for node in cause.nodes if node in when]
        said = _said(charge) if len(cause.charges) == 1 else _said_of_many(cause)
        yield Suspect(
            component=component,
            score=score,
            summary=f"{component} {said}.",
            ambiguous_with=tuple(node for node in cause.nodes if node != component),
            sure=score is None or score >= SURE,
            first_failure=min((first for first, _ in times), default=None),
            last_failure=max((last for _, last in times), default=None),
            says=said,
        )


def _violating(wrong: Sequence[Violation], outcome: Outcome) -> Iterator[Suspect]:
    """Nodes that violate rules or baseline; those that the fleet's own criteria blame are suspects already."""
    blamed = {charge.node for charge in outcome.charges}
    for one in wrong:
        nodes = tuple(node for node in one.nodes if node not in blamed)
        if nodes:
            said = _said_of_rules(one, len(nodes))
            yield Suspect(
                nodes[0], None, f"{nodes[0]} {said}.", ambiguous_with=nodes[1:], sure=True, says=said
            )


def _said_of_rules(one: Violation, nodes: int) -> str:
    others = len(one.details) - 1
    more = f" and {so_many(others, 'other check')}" if others else ""
    what = one.details[0] if len(one.details[0]) <= 110 else one.metrics[0]
    category = f" ({one.category})" if one.category and len(one.category) < 30 else ""
    many = f"is one of {nodes} nodes that fail" if nodes > 1 else "fails"
    return f"{many} the given limits{category}: {what}{more}"


def _said_of_many(cause: Cause) -> str:
    worst = cause.charges[0].failures[0].judged
    assert worst.criteria is not None
    place = {node: at for at, node in enumerate(worst.nodes)}
    means = [float(worst.means[place[node]]) for node in cause.nodes if node in place]
    off = show.change(sum(means) / len(means), worst.criteria.scale)
    many = (
        f"contains {len(cause.nodes)} nodes that are"
        if cause.parent
        else f"is one of {len(cause.nodes)} nodes"
    )
    middle = many if cause.parent else f"{many} that are"
    return (
        f"{middle} {off} than the fleet in the same metrics, first {worst.stratum.shown}: one cause is likely"
    )


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
    version="2.0.0",
    title="Names nodes whose benchmark results are worse than the fleet's own criteria",
    inputs=(Input("benchmark_and_topology", (SAMPLES, PARENTS)), Input("benchmark", (SAMPLES,))),
    params=PARAMS,
    analyze=analyze,
    history=HISTORY,
)
