"""Rule files and baselines of SuperBench, read and checked.

The format is that of https://microsoft.github.io/superbenchmark (Data Diagnosis): YAML with `superbench.rules`, each
rule with `function` (variance, value, multi_rules, failure_check), `criteria`, `categories`, `metrics` and `store`.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import yaml

from analyzers.superbench.criteria import Criterion, InvalidCriterionError, parse

FUNCTIONS = ("variance", "value", "multi_rules", "failure_check")
KEYS = ("function", "criteria", "categories", "store", "metrics")
LARGEST = 1 << 20
"""Bytes of a rule file at most."""


class InvalidRulesError(ValueError):
    """A rule file or baseline that cannot be used; the message names rule, key and what would be right."""


@dataclass(frozen=True, slots=True)
class Rule:
    """One rule. `patterns` are regular expressions over full metric names, as written and compiled.

    A `store` rule convicts no one: it keeps the number of violations (or, without criteria, the values) for
    `multi_rules`.
    """

    name: str
    function: str
    criterion: Criterion | None
    category: str
    store: bool
    patterns: tuple[tuple[str, re.Pattern[str]], ...]


def parse_rules(payload: bytes) -> tuple[Rule, ...]:
    """The rules in the order of the file. Raises InvalidRulesError."""
    if len(payload) > LARGEST:
        raise InvalidRulesError(f"the rule file has {len(payload):,} bytes, more than {LARGEST:,}")
    try:
        found = yaml.safe_load(payload)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        mark = getattr(error, "problem_mark", None)
        where = f" at line {mark.line + 1}, column {mark.column + 1}" if mark is not None else ""
        raise InvalidRulesError(f"the rule file is not YAML{where}") from error
    rules = found.get("superbench") if isinstance(found, dict) else None
    rules = rules.get("rules") if isinstance(rules, dict) else None
    if not isinstance(rules, dict) or not rules:
        raise InvalidRulesError("the rule file has no rules under superbench.rules")
    return tuple(_rule(str(name), raw) for name, raw in rules.items())


def parse_baseline(payload: bytes) -> dict[str, float]:
    """The baseline by metric name. Raises InvalidRulesError."""
    try:
        found = json.loads(payload)
    except (ValueError, RecursionError) as error:
        raise InvalidRulesError(f"the baseline is not JSON: {error}") from error
    if not isinstance(found, dict):
        raise InvalidRulesError("the baseline is not a JSON object of numbers by metric")
    for name, value in found.items():
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if not number or not math.isfinite(value):
            raise InvalidRulesError(f"baseline {name!r}: {value!r} is not a number")
    return {name: float(value) for name, value in found.items()}


def baseline_of(baseline: Mapping[str, float], metric: str) -> float | None:
    """The baseline of a metric by its name; else without its rank; else, where it has none, by its benchmark."""
    if metric in baseline:
        return baseline[metric]
    ranked = re.fullmatch(r"(.+):\d+", metric)
    return baseline.get(ranked[1] if ranked else metric.partition("/")[0])


def _rule(name: str, raw: Any) -> Rule:
    if not isinstance(raw, dict):
        raise InvalidRulesError(f"rule {name}: is not a mapping with {', '.join(KEYS)}")
    for key in raw:
        if key not in KEYS:
            raise InvalidRulesError(f"rule {name}: has no key {key!r}; there are {', '.join(KEYS)}")
    category, store = raw.get("categories"), raw.get("store", False)
    if not isinstance(category, str) or not category:
        raise InvalidRulesError(f"rule {name}: categories must be a text")
    if not isinstance(store, bool):
        raise InvalidRulesError(f"rule {name}: store must be true or false")
    keeps_values = store and "criteria" not in raw
    function = raw.get("function", "value" if keeps_values else None)
    if function not in FUNCTIONS:
        raise InvalidRulesError(f"rule {name}: function {function!r} is none of {', '.join(FUNCTIONS)}")
    criterion = None if keeps_values else _criterion(name, function, raw.get("criteria"))
    patterns = () if function == "multi_rules" else _patterns(name, raw.get("metrics"))
    return Rule(name, function, criterion, category, store, patterns)


def _criterion(name: str, function: str, text: Any) -> Criterion:
    if not isinstance(text, str):
        raise InvalidRulesError(f"rule {name}: criteria must be a text such as 'lambda x: x < -0.05'")
    try:
        criterion = parse(text)
    except InvalidCriterionError as error:
        raise InvalidRulesError(f"rule {name}: criteria: {error}") from error
    if function != "multi_rules":
        _check_of_number(name, criterion)
    return criterion


def _check_of_number(name: str, criterion: Criterion) -> None:
    """Criteria of numbers must answer true or false of 0, as SuperBench asks of them."""
    try:
        answer = criterion.holds(0)
    except (TypeError, ValueError, ArithmeticError, LookupError, AttributeError) as error:
        raise InvalidRulesError(f"rule {name}: criteria {criterion.text!r} fail for 0: {error}") from error
    if not isinstance(answer, bool):
        raise InvalidRulesError(
            f"rule {name}: criteria {criterion.text!r} give {answer!r} for 0, not true or false"
        )


def _patterns(name: str, metrics: Any) -> tuple[tuple[str, re.Pattern[str]], ...]:
    listed = [metrics] if isinstance(metrics, str) else metrics
    if not isinstance(listed, list) or not listed or not all(isinstance(one, str) for one in listed):
        raise InvalidRulesError(
            f"rule {name}: metrics must be a list of patterns such as mem-bw/H2D_Mem_BW:\\d+"
        )
    compiled = []
    for pattern in listed:
        try:
            compiled.append((pattern, re.compile(pattern)))
        except re.error as error:
            raise InvalidRulesError(
                f"rule {name}: metrics: {pattern!r} is no regular expression: {error}"
            ) from error
    return tuple(compiled)
