"""Diagnosis as `sb result diagnosis` states it, from results, a baseline and rules: the same categories and details.

The semantics are those of SuperBench 0.10 and later (superbench/analyzer/data_diagnosis.py), its quirks included: a
metric that is missing adds a detail and the category FailedTest but does not by itself make a node defective, unless
a `failure_check` asks for it; violations of a stored rule are listed without its category. Two things differ: names
are cut at the last `:` with digits (there, an annotated name without rank is mangled), and criteria are parsed, not
executed (`criteria`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from analyzers.superbench.rules import InvalidRulesError, Rule, baseline_of
from ingest.integrations.superbench import NodeResults

FAILED_TEST = "FailedTest"


@dataclass(frozen=True, slots=True)
class Finding:
    """Finding about one node; `metrics` are the judged figures (variance or value), None where missing."""

    node: str
    defective: bool
    categories: tuple[str, ...]
    details: tuple[str, ...]
    metrics: Mapping[str, float | None]


@dataclass(slots=True)
class _Notes:
    """Notes of the rules on one node."""

    values: Mapping[str, float | None]
    details: list[str] = field(default_factory=list)
    categories: set[str] = field(default_factory=set)
    figures: dict[str, float] = field(default_factory=dict)
    stored: dict[str, Any] = field(default_factory=dict)

    def add(self, detail: str, category: str | None) -> None:
        self.details.append(detail)
        if category:
            self.categories.add(category)


def diagnose(
    results: Sequence[NodeResults], rules: Sequence[Rule], baseline: Mapping[str, float]
) -> list[Finding]:
    """Judge every node, in the order of the results.

    Raises InvalidRulesError for a node that is there twice, a baseline of 0 or none where variance needs one, a
    criterion that asks for a rule that was not stored, or gives no true or false.
    """
    _check_nodes(results)
    names = list(dict.fromkeys(name for one in results for name in one.metrics))
    metrics = {rule.name: _matching(rule, names) for rule in rules}
    enabled = sorted({metric for rule in rules for metric in metrics[rule.name]})
    findings = []
    for one in results:
        notes = _Notes(one.metrics)
        defective = False
        for rule in rules:
            violated = _violations(rule, metrics[rule.name], baseline, notes)
            if rule.store:
                notes.stored.setdefault(rule.name, violated)
            elif violated:
                defective = True
        figures = {metric: notes.figures.get(metric) for metric in enabled}
        findings.append(
            Finding(
                one.node, defective, tuple(sorted(notes.categories)), tuple(sorted(notes.details)), figures
            )
        )
    return findings


def _check_nodes(results: Sequence[NodeResults]) -> None:
    seen = set()
    for one in results:
        if one.node in seen:
            raise InvalidRulesError(f"node {one.node} has two lines of results: give one run at a time")
        seen.add(one.node)


def _matching(rule: Rule, names: Sequence[str]) -> list[str]:
    """The measured metrics that a rule speaks of: of a benchmark that one of its patterns names, and matched."""
    if rule.function == "multi_rules":
        return []
    by_benchmark: dict[str, list[Any]] = {}
    for text, pattern in rule.patterns:
        if "/" in text:
            by_benchmark.setdefault(_benchmark(text), []).append((text, pattern))
    exact = {text for text, _ in rule.patterns}
    found = []
    for benchmark, patterns in by_benchmark.items():
        for name in names:
            if "/" not in name or _benchmark(name) != benchmark:
                continue
            if name in exact or any(pattern.search(name) for _, pattern in patterns):
                found.append(name)
    return found


def _benchmark(name: str) -> str:
    """The benchmark of a metric or pattern, without its annotation."""
    return name.split("/")[0].split(":")[0]


def _violations(rule: Rule, metrics: Sequence[str], baseline: Mapping[str, float], notes: _Notes) -> int:
    """Number of violations of the rule; stored values are put down where a rule only stores."""
    if rule.criterion is None:
        notes.stored[rule.name] = {metric: _measured(notes, metric) for metric in metrics}
        return 0
    if rule.function == "multi_rules":
        return _combined(rule, notes)
    missing = _unmatched(rule, metrics, notes) if rule.function == "failure_check" else 0
    return missing + sum(_one(rule, metric, baseline, notes) for metric in metrics)


def _measured(notes: _Notes, metric: str) -> float:
    value = notes.values.get(metric)
    return float("nan") if value is None else value


def _one(rule: Rule, metric: str, baseline: Mapping[str, float], notes: _Notes) -> bool:
    """Whether a metric violates the rule."""
    value = notes.values.get(metric)
    if value is None:
        notes.add(f"{metric}_miss", FAILED_TEST)
        return False
    figure, shown = value, f"VAL: {value:.4f}"
    if rule.function == "variance":
        usual = baseline_of(baseline, metric)
        if not usual:
            raise InvalidRulesError(
                f"rule {rule.name}: {metric} has {'a baseline of 0' if usual == 0 else 'no baseline'}"
            )
        figure = (value - usual) / usual
        shown = f"B/L: {usual:.4f} VAL: {value:.4f} VAR: {figure * 100:.2f}%"
    notes.figures[metric] = figure
    assert rule.criterion is not None
    if not _answer(rule, figure):
        return False
    notes.add(f"{metric}({shown} Rule:{rule.criterion.text})", None if rule.store else rule.category)
    return True


def _answer(rule: Rule, figure: float) -> bool:
    assert rule.criterion is not None
    try:
        return bool(rule.criterion.holds(figure))
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise InvalidRulesError(
            f"rule {rule.name}: criteria {rule.criterion.text!r} fail for {figure:g}: {error}"
        ) from error


def _unmatched(rule: Rule, metrics: Sequence[str], notes: _Notes) -> int:
    """Patterns of a failure check that no metric matches, or whose first match was not measured."""
    count = 0
    for text, pattern in rule.patterns:
        first = next((metric for metric in metrics if pattern.search(metric)), None)
        if first is None:
            notes.add(f"{text}_miss", rule.category)
        count += first is None or notes.values.get(first) is None
    return count


def _combined(rule: Rule, notes: _Notes) -> int:
    """1 if the criterion over what other rules stored holds; where their values do not allow an answer, 0."""
    assert rule.criterion is not None
    try:
        answer = rule.criterion.holds(notes.stored)
    except KeyError as error:
        raise InvalidRulesError(
            f"rule {rule.name}: criteria ask for {error}, which no rule before it stores"
        ) from error
    except (TypeError, ValueError, ArithmeticError, AttributeError):
        return 0
    if not isinstance(answer, bool):
        return 0
    if answer:
        notes.add(f"{rule.name}:{rule.criterion.text}", rule.category)
    return int(answer)
