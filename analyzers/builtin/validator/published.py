"""Nodes held against a baseline and rules that the user gives, in the formats of SuperBench.

With rules a node is judged as `sb result diagnosis` judges it (`analyzers.superbench`). With a baseline alone a node
fails in a metric that is worse than the baseline by more than the validator allows. Either needs no other node, so
that a fleet of three can be judged. A node's value is the mean of its runs.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from analyzers.builtin.nodes.samples import Sample, Stratum, direction_of
from analyzers.builtin.text import figure
from analyzers.superbench.diagnosis import diagnose
from analyzers.superbench.rules import InvalidRulesError, Rule, baseline_of, parse_baseline, parse_rules
from ingest.integrations.superbench import NodeResults

_LARGE = 0.2
"""Share of the nodes that fail in the same metrics from which on the fleet, or its baseline, is the matter."""
_MANY = 4


@dataclass(frozen=True, slots=True)
class Violation:
    """`nodes` (sorted) fail the same `metrics`; `details` are those of the first. More than one node: it is a large
    part of the fleet, and one cause.
    """

    nodes: tuple[str, ...]
    metrics: tuple[str, ...]
    details: tuple[str, ...]
    category: str


def check_baseline(text: str) -> str | None:
    """Fault of a text that is no baseline, or None."""
    try:
        _baseline(text)
    except InvalidRulesError as error:
        return str(error)
    return None


def check_rules(text: str) -> str | None:
    """Fault of a text that is no rule file, or None."""
    try:
        _rules(text)
    except InvalidRulesError as error:
        return str(error)
    return None


def violations(
    measured: Mapping[Stratum, Sample],
    baseline: str,
    rules: str,
    similarity: float,
    words: tuple[frozenset[str], frozenset[str]],
) -> tuple[Violation, ...]:
    """Violations of rules and baseline; none of either is given by an empty text. `words` are further words of
    metrics that are worse when they fall, and when they rise.

    Raises InvalidRulesError where they cannot be applied to what was measured, say because a metric has no baseline.
    """
    if not (baseline or rules):
        return ()
    results = _results(measured)
    usual = _baseline(baseline) if baseline else {}
    found = (
        _by_rules(results, _rules(rules), usual) if rules else _by_baseline(results, usual, similarity, words)
    )
    return _together(found, len(results))


@lru_cache(maxsize=8)
def _baseline(text: str) -> dict[str, float]:
    return parse_baseline(text.encode())


@lru_cache(maxsize=8)
def _rules(text: str) -> tuple[Rule, ...]:
    return parse_rules(text.encode())


def _results(measured: Mapping[Stratum, Sample]) -> list[NodeResults]:
    """Means by node, under the names that SuperBench gives; a metric that a node has under two kinds counts once."""
    by_node: dict[str, dict[str, float | None]] = {}
    for stratum, sample in measured.items():
        name = _name(stratum)
        ends = np.append(sample.starts[1:], len(sample.values))
        for node, start, end in zip(sample.nodes, sample.starts.tolist(), ends.tolist(), strict=True):
            mean = float(np.average(sample.values[start:end], weights=sample.times[start:end]))
            by_node.setdefault(node, {})[name] = mean
    return [NodeResults(node, by_node[node]) for node in sorted(by_node)]


def _name(stratum: Stratum) -> str:
    """A metric that is named as its benchmark had no slash in SuperBench's results."""
    if stratum.metric.partition(":")[0] == stratum.benchmark:
        return stratum.metric
    return f"{stratum.benchmark}/{stratum.metric}"


def _by_rules(
    results: Sequence[NodeResults], rules: Sequence[Rule], baseline: Mapping[str, float]
) -> dict[str, Violation]:
    found = {}
    for one in diagnose(results, rules, baseline):
        if one.defective:
            metrics = tuple(sorted({detail.partition("(")[0] for detail in one.details}))
            found[one.node] = Violation((one.node,), metrics, one.details, ", ".join(one.categories))
    return found


def _by_baseline(
    results: Sequence[NodeResults],
    baseline: Mapping[str, float],
    similarity: float,
    words: tuple[frozenset[str], frozenset[str]],
) -> dict[str, Violation]:
    found = {}
    for one in results:
        failed = {
            name: f"{name} is {figure(value)}, {100 * abs(value / usual - 1):.3g} % worse than the baseline of "
            f"{figure(usual)}"
            for name, value in sorted(one.metrics.items())
            if value is not None
            and (usual := baseline_of(baseline, name) or 0.0) > 0
            and _worse(name, value / usual - 1, words) > 1 - similarity
        }
        if failed:
            found[one.node] = Violation((one.node,), tuple(failed), tuple(failed.values()), "")
    return found


def _worse(name: str, change: float, words: tuple[frozenset[str], frozenset[str]]) -> float:
    benchmark, _, metric = name.rpartition("/")
    direction = direction_of(benchmark, metric, *words)
    return -change if direction == "higher" else change if direction == "lower" else 0.0


def _together(found: Mapping[str, Violation], nodes: int) -> tuple[Violation, ...]:
    """Nodes that fail the same metrics as one violation, where they are a large part of the fleet."""
    by_metrics: dict[tuple[str, ...], list[Violation]] = {}
    for one in found.values():
        by_metrics.setdefault(one.metrics, []).append(one)
    joined: list[Violation] = []
    for same in by_metrics.values():
        first = same[0]
        if len(same) >= max(_MANY, _LARGE * nodes):
            names = tuple(sorted(one.nodes[0] for one in same))
            joined.append(Violation(names, first.metrics, first.details, first.category))
        else:
            joined += same
    return tuple(sorted(joined, key=lambda one: (-len(one.nodes), one.nodes)))
