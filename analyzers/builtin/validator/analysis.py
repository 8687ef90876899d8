"""Validation of nodes by benchmarks (Xiong et al., USENIX ATC 2024, the system called Anubis or SuperBench).

The fleet says itself what is normal: criteria for each metric are the most typical node's distribution, found by
dropping what is dissimilar until the rest agrees. A node whose distribution is less similar than the parameter asks,
on the worse side, is a gray failure before anyone's job fails on it. How far healthy nodes differ is learnt from the
better half (`tails`), with what is known of other fleets where nodes are few.

Beside the fleet a baseline and rules of SuperBench can be given (`published`). Nodes that are worse in the same way
are one suspect (`nodes.causes`), as are parts of the fleet that became worse together; nodes whose label is wrong are
none (`nodes.defects`).

A node has failed since the first round whose results show it. Assumptions are checked on the window; probabilities
are lowered where one fails.
"""

from __future__ import annotations

import json
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import replace
from datetime import datetime
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.nodes.causes import Cause, Shift, causes, kinds, shared_by, shifts
from analyzers.builtin.nodes.defects import WANTED, judge
from analyzers.builtin.nodes.outcome import Charge, Failure, Judged, Outcome, Rules
from analyzers.builtin.nodes.samples import Stratum, samples, words_given
from analyzers.builtin.nodes.similarity import quantiles_of, worse_by
from analyzers.builtin.paths import texts, whole
from analyzers.builtin.stats.intervals import moment
from analyzers.builtin.text import count, figure, listed, percent, so_many
from analyzers.builtin.validator import evidence as show
from analyzers.builtin.validator.calibration import probability
from analyzers.builtin.validator.published import Violation, violations
from analyzers.contract import (
    INVENTORY,
    Assumption,
    Params,
    Paths,
    Sums,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
)
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
    remaining = tuple(
        charge
        for charge in outcome.charges
        if charge.node not in by
        or any(
            one.judged.stratum not in by[charge.node].metrics
            or float(one.judged.worse[one.at]) > 2 * by[charge.node].by
            for one in charge.failures
        )
    )
    return replace(outcome, charges=remaining)


def _shifted(found: Sequence[Shift], window: Window, lowered_to: float) -> Iterator[Suspect]:
    """One suspect for each part: what its nodes share, as far as the topology tells, or its first node. How far nodes
    differ from each other does not bear on it: each is held against itself.
    """
    groups = groups_of(window)
    times = _times(window)
    for one in found:
        component = shared_by(one.nodes, groups, tuple(times)) or one.nodes[0]
        sentence = _shift_summary(one, component not in one.nodes)
        measured = [times[node] for node in one.nodes if node in times]
        score = min(lowered_to, probability(0.0))
        yield Suspect(
            component=component,
            score=score,
            summary=f"{component} {sentence}.",
            ambiguous_with=tuple(node for node in one.nodes if node != component),
            sure=score >= SURE and lowered_to == 1.0,
            first_failure=min((first for first, _ in measured), default=None),
            last_failure=max((last for _, last in measured), default=None),
            phrase=sentence,
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
    """Violations of the rules and the baseline that are given, and the reason why they cannot be applied."""
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
    """Reason why nobody can be cleared although nobody is blamed, or None. A baseline or rules clear nodes by
    themselves."""
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
    """Requirement where a node of a small fleet is beyond its bar, and chance explains it; else None."""
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
        sentence = _summary(charge) if len(cause.charges) == 1 else _common_cause_summary(cause)
        yield Suspect(
            component=component,
            score=score,
            summary=f"{component} {sentence}.",
            ambiguous_with=tuple(node for node in cause.nodes if node != component),
            sure=score is None or (score >= SURE and lowered_to == 1.0),
            first_failure=min((first for first, _ in times), default=None),
            last_failure=max((last for _, last in times), default=None),
            phrase=sentence,
        )


def _violating(wrong: Sequence[Violation], outcome: Outcome, shifted: Set[str]) -> Iterator[Suspect]:
    """Nodes that violate rules or baseline; those that the fleet's own criteria blame are suspects already."""
    blamed = {charge.node for charge in outcome.charges} | shifted
    for one in wrong:
        nodes = tuple(node for node in one.nodes if node not in blamed)
        if nodes:
            sentence = _rules_summary(one, len(nodes))
            yield Suspect(
                nodes[0],
                None,
                f"{nodes[0]} {sentence}.",
                ambiguous_with=nodes[1:],
                sure=True,
                phrase=sentence,
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
    """Fault, as the end of a sentence that begins with the node."""
    worst = charge.failures[0]
    others = len(charge.failures) - 1
    more = f", and fails {count(others)} other metric{'s' if others > 1 else ''}" if others else ""
    name = worst.judged.stratum.shown
    if worst.judged.criteria is None:
        return f"fails {name} ({figure(float(worst.judged.means[worst.at]))} instead of 0){more}"
    usual, mean = worst.judged.criteria.scale, float(worst.judged.means[worst.at])
    return f"is {show.change(mean, usual)} than the fleet in {name} ({figure(mean)} instead of {figure(usual)}){more}"


Span = tuple[datetime, datetime]
Rows = list[int]


def spans(sums: Sums, charges: Sequence[Charge]) -> dict[str, Span]:
    """The first and the last round in which each of the charged was nearer to what it is charged with than to the
    fleet's criteria, so that what was measured after a repair does not make a fault last. All of its rounds where none
    was; a node is left out where the sums do not tell of time.
    """
    if "time" not in sums.keys:
        return {}
    times = whole(sums, "time")
    rows = _rows(sums, charges)
    found = {}
    for charge in charges:
        every = [(one, rows[charge.node, one.judged.stratum]) for one in charge.failures]
        bad = [time for one, mine in every for time in _bad(sums, times, mine, one)]
        among = bad or [int(times[row]) for _, mine in every for row in mine]
        found[charge.node] = moment(min(among)), moment(max(among))
    return found


def _rows(sums: Sums, charges: Sequence[Charge]) -> dict[tuple[str, Stratum], Rows]:
    """Rows of the samples that each is charged for."""
    wanted = {(charge.node, *one.judged.stratum) for charge in charges for one in charge.failures}
    keys = zip(*(texts(sums, name) for name in ("node", "benchmark", "metric", "sku")), strict=True)
    found: dict[tuple[str, Stratum], Rows] = defaultdict(list)
    for row, key in enumerate(keys):
        if key in wanted:
            found[key[0], Stratum(*key[1:])].append(row)
    return found


def _bad(sums: Sums, times: NDArray[np.int64], rows: Rows, failure: Failure) -> Iterator[int]:
    """The rounds among these rows in which it failed more than half as much as in all of them."""
    judged, value = failure.judged, np.asarray(sums.keys["value"], dtype=np.float64)[rows]
    order = np.lexsort((value, times[rows]))
    value, at, often = value[order], times[rows][order], np.asarray(sums.values["times"])[rows][order]
    rounds, starts = np.unique(at, return_index=True)
    usual = judged.criteria
    if usual is None:  # a test, which passes or fails
        worse, least = np.maximum.reduceat(np.abs(value), starts), 0.0
    else:
        quantiles, _ = quantiles_of(value, often.astype(np.int64), starts, len(usual.quantiles))
        worse = worse_by(quantiles, usual.quantiles, usual.scale, judged.direction == "higher")
        least = float(judged.worse[failure.at]) / 2
    yield from rounds[worse > least].tolist()


def groups_of(window: Window) -> Mapping[str, tuple[str, ...]]:
    """Groups of each component: parents, its dependencies, and labels as `key/value`."""
    found: dict[str, tuple[str, ...]] = dict(parents_of(window))
    needs, labels = window.sums.get("needs"), window.sums.get("labels")
    if needs is not None and needs.rows:
        needed = needs.keys["depends_on"]
        assert isinstance(needed, Paths)
        for row, name in enumerate(texts(needs, "component")):
            found[name] = (*found.get(name, ()), *needed[row])
    if labels is not None and labels.rows:
        for name, body in zip(texts(labels, "component"), texts(labels, "labels"), strict=True):
            pairs = json.loads(body) if body else {}
            found[name] = (*found.get(name, ()), *(f"{key}/{value}" for key, value in sorted(pairs.items())))
    return found


def parents_of(window: Window) -> Mapping[str, tuple[str, ...]]:
    """The parents of each component; empty without topology."""
    sums = window.sums.get(INVENTORY)
    if sums is None or not sums.rows:
        return {}
    parents = sums.keys["parents"]
    assert isinstance(parents, Paths)
    return {name: parents[row] for row, name in enumerate(texts(sums, "component"))}


LOWERED = (1.0, 0.95, 0.85)
"""Most that is stated where none, one, and two or more assumptions fail that bear on who is blamed. Where one did, 45
of 45 suspects were right [.92, 1], where two did 10 of 12 [.55, .95] (tuning seeds 300 to 302 of both generators)."""
_MOST_MISSING = 0.1
"""Share of node and metric pairs without a result from which on results are missing for a reason."""
_WIDE = 0.0125
"""Spread of nodes above which 5 % worse is not seen any more: four spreads are allowed."""
_MOST_WIDE = 0.34


def assumptions(
    outcome: Outcome, window: Window, unusable: str | None, kinds: Sequence[Shift] = ()
) -> tuple[Assumption, ...]:
    """The assumptions of one window, in a fixed order. `unusable` says why rules cannot be applied; `kinds` are kinds
    of machine that no label tells apart."""
    learnt = [one for one in outcome.judged if one.criteria is not None]
    found = [_sampling(learnt), _labels(outcome, kinds)]
    if learnt:
        found.insert(1, _noise(learnt))
    if window.history:
        found.insert(0, _history(outcome, learnt, window))
    if unusable is not None:
        found.append(Assumption("rules", False, unusable))
    return tuple(found)


def lowered(checked: Sequence[Assumption]) -> float:
    """The most that may be stated of a suspect."""
    failed = {one.name for one in checked if not one.holds} & {"history", "sampling", "noise", "topology"}
    return LOWERED[min(len(failed), len(LOWERED) - 1)]


def _history(outcome: Outcome, learnt: Sequence[Judged], window: Window) -> Assumption:
    changed = sum(one.why == "repeatability" for one in outcome.unjudged)
    earlier = window.history[-1].sums["samples"]
    levels = {stratum: float(np.median(one.quantiles(1))) for stratum, one in samples(earlier).items()}
    moved = [
        (one.criteria.scale / levels[one.stratum] - 1, one.stratum.shown)
        for one in learnt
        if one.criteria is not None and levels.get(one.stratum, 0.0) > 0
    ]
    far = sorted((-abs(by), by, name) for by, name in moved if abs(by) > 0.05)
    if far:
        _, by, name = far[0]
        detail = f"The whole fleet changed by {100 * by:+.1f} % in {name} since the window before"
        more = f" (and in {so_many(len(far) - 1, 'other metric')})" if len(far) > 1 else ""
        return Assumption("history", False, f"{detail}{more}: nodes are compared with each other only.")
    if changed:
        detail = f"{so_many(changed, 'metric')} did not repeat between rounds and were not used."
        return Assumption("history", False, detail)
    return Assumption("history", True, f"{so_many(len(moved), 'metric')} repeat from the window before.")


def _sampling(learnt: Sequence[Judged]) -> Assumption:
    if not learnt:
        return Assumption("sampling", False, "No metric was measured on enough nodes.")
    fewest = int(np.median([one.learnt_from for one in learnt]))
    by_kind: dict[str, set[str]] = {}
    for one in learnt:
        by_kind.setdefault(one.stratum.sku, set()).update(one.nodes)
    cells = sum(len(by_kind[one.stratum.sku]) for one in learnt)
    missing = 1 - sum(len(one.nodes) for one in learnt) / cells
    if fewest < WANTED:
        detail = (
            f"A metric was measured on {so_many(fewest, 'node')} (median): how far healthy nodes differ is taken "
            f"from other fleets as far as fewer than {WANTED} do not tell."
        )
        return Assumption("sampling", False, detail)
    if missing > _MOST_MISSING:
        detail = f"{percent(missing)} of the results of measured nodes are missing."
        return Assumption("sampling", False, detail)
    measured = f"A metric was measured on {so_many(fewest, 'node')} (median)"
    return Assumption("sampling", True, f"{measured}; {percent(missing)} of the results are missing.")


def _noise(learnt: Sequence[Judged]) -> Assumption:
    wide = [
        (one.criteria.spread, one.stratum.shown)
        for one in learnt
        if one.criteria and one.criteria.spread > _WIDE
    ]
    if len(wide) > _MOST_WIDE * len(learnt):
        most, name = max(wide)
        detail = (
            f"In {len(wide)} of {so_many(len(learnt), 'metric')} healthy nodes differ by more than {percent(_WIDE)} "
            f"({percent(most)} in {name}): what is worse by less than four times that is not seen."
        )
        return Assumption("noise", False, detail)
    usual = float(np.median([one.criteria.spread for one in learnt if one.criteria]))
    return Assumption("noise", True, f"Healthy nodes differ by {percent(usual)} (median of metrics).")


def _labels(outcome: Outcome, kinds: Sequence[Shift]) -> Assumption:
    split = sum(one.why == "split" for one in outcome.unjudged)
    if outcome.other_kind:
        names = tuple(sorted(outcome.other_kind))
        detail = (
            f"{listed(names)}: results are those of another sku than the label says; not blamed for that."
        )
        return Assumption("topology", False, detail)
    if kinds:
        one = kinds[0]
        detail = (
            f"{len(one.nodes)} of {one.of} nodes ({listed(one.nodes)}) are {100 * abs(one.by):.2g} % from the others "
            f"in {one.metrics[0].shown} and {so_many(len(one.metrics) - 1, 'other metric')}: two kinds of machine "
            "under one label. Give each kind its `sku`."
        )
        return Assumption("topology", False, detail)
    if split:
        detail = f"In {so_many(split, 'metric')} the nodes are of two kinds, and no label separates them."
        return Assumption("topology", False, detail)
    return Assumption("topology", True, "The results of each node agree with its sku.")
