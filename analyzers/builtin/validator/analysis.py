"""Validation of nodes by benchmarks (Xiong et al., USENIX ATC 2024, the system called Anubis or SuperBench).

The fleet says itself what is normal: criteria for each metric are the most typical node's distribution, found by
dropping what is dissimilar until the rest agrees. A node whose distribution is less similar than the parameter asks,
on the worse side, is a gray failure before anyone's job fails on it. How far healthy nodes differ is learnt from the
better half (`tails`), with what is known of other fleets where nodes are few.

Beside the fleet a baseline and rules of SuperBench can be given (`published`). Nodes that are worse in the same way are
one suspect (`node_causes`), as are parts of the fleet that became worse together (`node_shifts`); nodes whose label is
wrong are none (`node_kinds`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np

from analyzers.builtin.nodes.causes import Cause, causes
from analyzers.builtin.nodes.defects import WANTED, judge
from analyzers.builtin.nodes.directions import words_given
from analyzers.builtin.nodes.outcome import Charge, Outcome, Rules
from analyzers.builtin.nodes.samples import samples
from analyzers.builtin.nodes.shifts import Shift, kinds, shared_by, shifts
from analyzers.builtin.paths import texts, whole
from analyzers.builtin.stats.intervals import moment
from analyzers.builtin.text import count, figure, so_many
from analyzers.builtin.validator import evidence as show
from analyzers.builtin.validator.assumptions import assumptions, lowered
from analyzers.builtin.validator.calibration import probability
from analyzers.builtin.validator.placement import groups_of, parents_of
from analyzers.builtin.validator.published import Violation, violations
from analyzers.builtin.validator.rounds import spans
from analyzers.contract import Params, Suspect, Verdict, Window, inconclusive, quiet
from analyzers.superbench.rules import InvalidRulesError

SURE = 0.9


def analyze(window: Window, params: Params) -> Verdict:
    outcome = validate(window, params)
    measures = _measures(outcome, window)
    if outcome.nodes == 0:
        return inconclusive("No benchmark was run in this window.", measures)
    wrong, unusable = _violations(window, params)
    shifted, apart = _parts(window, params)
    checked = assumptions(outcome, window, unusable, apart)
    outcome = _without(outcome, shifted)
    found = causes(outcome, parents_of(window))
    if not outcome.charges and not wrong and not shifted:
        reason = unusable if unusable and not outcome.judged else _undecided(outcome, params)
        if reason is not None:
            return Verdict(
                "inconclusive", (), reason, measures, show.of_the_unjudged(outcome), assumptions=checked
            )
        return quiet(measures, show.of_the_quiet(outcome, params), checked)
    most = lowered(checked)
    suspects = (
        *_shifted(shifted, window, lowered([one for one in checked if one.name != "noise"])),
        *_suspects(outcome, found, window, most),
        *_violating(wrong, outcome, {node for one in shifted for node in one.nodes}),
    )
    evidence = (
        *show.of_shifts(shifted, window),
        *show.of_violations(wrong),
        *(show.of_the_blamed(outcome, found, most, params) if found else show.of_the_quiet(outcome, params)),
    )
    return Verdict("named", suspects, None, measures, evidence, assumptions=checked)


def _parts(window: Window, params: Params) -> tuple[tuple[Shift, ...], tuple[Shift, ...]]:
    """Parts of the fleet that became worse together, and kinds of machine that no label tells apart."""
    now = samples(window.sums["samples"])
    past = [samples(one.sums["samples"]) for one in reversed(window.history)]
    words = words_given(str(params["higher"])), words_given(str(params["lower"]))
    return shifts(now, past, words), kinds(now)


def _without(outcome: Outcome, shifted: Sequence[Shift]) -> Outcome:
    """The outcome without nodes that fail by no more than twice what the part of the fleet they belong to is worse."""
    if not shifted:
        return outcome
    by = {node: one for one in shifted for node in one.nodes}
    kept = tuple(
        charge
        for charge in outcome.charges
        if charge.node not in by
        or any(
            one.judged.stratum not in by[charge.node].metrics
            or float(one.judged.worse[one.at]) > 2 * by[charge.node].by
            for one in charge.failures
        )
    )
    return replace(outcome, charges=kept)


def _shifted(found: Sequence[Shift], window: Window, lowered_to: float) -> Iterator[Suspect]:
    """One suspect for each part: what its nodes share, as far as the topology tells, or its first node. How far nodes
    differ from each other does not bear on it: each is held against itself.
    """
    groups = groups_of(window)
    times = _times(window)
    for one in found:
        component = shared_by(one.nodes, groups, tuple(times)) or one.nodes[0]
        said = _shift_summary(one, component not in one.nodes)
        measured = [times[node] for node in one.nodes if node in times]
        score = min(lowered_to, probability(0.0))
        yield Suspect(
            component=component,
            score=score,
            summary=f"{component} {said}.",
            ambiguous_with=tuple(node for node in one.nodes if node != component),
            sure=score >= SURE,
            first_failure=min((first for first, _ in measured), default=None),
            last_failure=max((last for _, last in measured), default=None),
            says=said,
        )


def _shift_summary(one: Shift, shared: bool) -> str:
    what = "is shared by" if shared else "is one of"
    more = f" and {so_many(len(one.metrics) - 1, 'other metric')}" if len(one.metrics) > 1 else ""
    where = f"{one.metrics[0].shown}{more}"
    worse = f"became {100 * one.by:.2g} % worse together in {where}"
    return f"{what} {len(one.nodes)} nodes that {worse}: one cause is likely"


def _times(window: Window) -> Mapping[str, tuple[datetime, datetime]]:
    """The first and the last round of each node, where the sums tell of time."""
    sums = window.sums["samples"]
    found: dict[str, tuple[datetime, datetime]] = {}
    if "time" in sums.keys:
        for node, at in zip(texts(sums, "node"), whole(sums, "time").tolist(), strict=True):
            first, last = found.get(node, (moment(at), moment(at)))
            found[node] = min(first, moment(at)), max(last, moment(at))
    return found


def _violations(window: Window, params: Params) -> tuple[tuple[Violation, ...], str | None]:
    """Who violates the rules and the baseline that are given, and why they cannot be applied."""
    words = words_given(str(params["higher"])), words_given(str(params["lower"]))
    given = str(params["baseline"]), str(params["rules"])
    try:
        measured = samples(window.sums["samples"])
        return violations(measured, *given, float(params["similarity"]), words), None
    except InvalidRulesError as error:
        return (), f"The rules cannot be applied: {error}."


def validate(window: Window, params: Params) -> Outcome:
    """Judge the nodes that were measured in the window, by the parameters of `analyzer.PARAMS`."""
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
    return _too_small(outcome)


def _too_small(outcome: Outcome) -> str | None:
    """What would be needed where a node of a small fleet is beyond its bar, and chance explains it; else None."""
    for one in outcome.judged:
        if one.criteria is None or one.learnt_from >= WANTED:
            continue
        doubtful = np.flatnonzero((one.worse > one.bar) & ~one.failing)
        if len(doubtful):
            at = int(doubtful[np.argmax(one.worse[doubtful])])
            off = show.change(float(one.means[at]), one.criteria.scale)
            return (
                f"{one.nodes[at]} is {off} than {one.learnt_from - 1} other nodes in {one.stratum.shown}, and so few "
                f"do not tell whether that is chance: {WANTED} nodes of its kind, a round from before, or a baseline "
                "(the parameter `baseline`) would."
            )
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
        said = _summary(charge) if len(cause.charges) == 1 else _common_cause_summary(cause)
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


def _violating(wrong: Sequence[Violation], outcome: Outcome, shifted: Set[str]) -> Iterator[Suspect]:
    """Nodes that violate rules or baseline; those that the fleet's own criteria blame are suspects already."""
    blamed = {charge.node for charge in outcome.charges} | shifted
    for one in wrong:
        nodes = tuple(node for node in one.nodes if node not in blamed)
        if nodes:
            said = _rules_summary(one, len(nodes))
            yield Suspect(
                nodes[0], None, f"{nodes[0]} {said}.", ambiguous_with=nodes[1:], sure=True, says=said
            )


def _rules_summary(one: Violation, nodes: int) -> str:
    others = len(one.details) - 1
    more = f" and {so_many(others, 'other check')}" if others else ""
    what = one.details[0] if len(one.details[0]) <= 110 else one.metrics[0]
    category = f" ({one.category})" if one.category and len(one.category) < 30 else ""
    many = f"is one of {nodes} nodes that fail" if nodes > 1 else "fails"
    return f"{many} the given limits{category}: {what}{more}"


def _common_cause_summary(cause: Cause) -> str:
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


def _summary(charge: Charge) -> str:
    """What is wrong, as the end of a sentence that begins with the node."""
    worst = charge.failures[0]
    others = len(charge.failures) - 1
    more = f", and fails {count(others)} other metric{'s' if others > 1 else ''}" if others else ""
    name = worst.judged.stratum.shown
    if worst.judged.criteria is None:
        return f"fails {name} ({figure(float(worst.judged.means[worst.at]))} instead of 0){more}"
    usual, mean = worst.judged.criteria.scale, float(worst.judged.means[worst.at])
    return f"is {show.change(mean, usual)} than the fleet in {name} ({figure(mean)} instead of {figure(usual)}){more}"
