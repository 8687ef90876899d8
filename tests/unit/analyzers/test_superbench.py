"""SuperBench's diagnosis without running its rules as code."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from analyzers.superbench.criteria import InvalidCriterionError, parse
from analyzers.superbench.diagnosis import Finding, diagnose
from analyzers.superbench.rules import InvalidRulesError, baseline_of, parse_baseline, parse_rules
from ingest.integrations.superbench import NodeResults, parse_results

DIRECTORY = os.environ.get("SUPERBENCH_DIR")


@pytest.mark.parametrize(
    ("text", "value", "answer"),
    [
        ("lambda x: x < -0.05", -0.06, True),
        ("lambda x:x>0.05", 0.05, False),
        ("lambda x: 0 < x <= 2 * 3", 6, True),
        ("lambda x: not x > 1 and (x + 1) / 2 != 0.5", 0.5, True),
        ("lambda x: x < 1 or x > 9", 10, True),
        ("lambda x: abs(x) >= min(3, 2)", -2, True),
        ('lambda label: True if label["a"] + label["b"] >= 2 else False', {"a": 1, "b": 1}, True),
        (
            'lambda label: max(label["a"].values()) - min(label["a"].values()) > 1',
            {"a": {"x": 1, "y": 3}},
            True,
        ),
        ('lambda label: bool(label["a"]["x"])', {"a": {"x": 0}}, False),
        ('lambda label: len(label["a"]) == sum(label["a"].values())', {"a": {"x": 1}}, True),
    ],
)
def test_criteria_mean_what_python_means(text: str, value: Any, answer: bool) -> None:
    assert parse(text).holds(value) is answer
    assert eval(text)(value) is answer  # the reference: what SuperBench does with them


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("x > 1", "'x > 1': is not a lambda"),
        ("lambda: 1", "one plain argument"),
        ("lambda x, y: x", "one plain argument"),
        ("lambda x=1: x", "one plain argument"),
        (
            "lambda x: __import__('os')",
            "character 11, \"__import__('os')\": function '__import__' is not allowed",
        ),
        ("lambda x: x.__class__", "Attribute is not allowed"),
        ("lambda x: x.mro()", "method .mro() is not allowed"),
        ("lambda x: [y for y in x]", "ListComp is not allowed"),
        ("lambda x: y > 1", "only the argument 'x' has a name here"),
        ("lambda x: 9 ** 9", "operator Pow is not allowed"),
        ("lambda x: 'a' * 9", "neither a number nor True nor False"),
        ("lambda x: x[0]", 'a text such as "rule1"'),
        ("lambda x: sum(*x)", "starred arguments"),
        ("lambda x: x is x", "comparison Is is not allowed"),
        ("lambda x: ~x", "operator Invert is not allowed"),
        ("lambda x: x >", "is not an expression at character"),
        ("lambda x: " + "-" * 100 + "x", "nested more than 50 deep"),
        ("lambda x: " + "(" * 1500 + "x" + ")" * 300, "is not an expression"),
        ("lambda x: " + "1+" * 1000 + "x", "more than 2000"),
    ],
)
def test_everything_else_is_refused_by_name_and_place(text: str, complaint: str) -> None:
    with pytest.raises(InvalidCriterionError) as raised:
        parse(text)
    assert complaint in str(raised.value)


def rules_of(**rules: dict[str, Any]) -> bytes:
    return json.dumps({"version": "v0.10", "superbench": {"rules": rules}}).encode()


def variance(*metrics: str, criteria: str = "lambda x: x < -0.05", **more: Any) -> dict[str, Any]:
    return {
        "function": "variance",
        "criteria": criteria,
        "categories": "Mem",
        "metrics": list(metrics),
        **more,
    }


def judged(
    rules: dict[str, dict[str, Any]],
    metrics: dict[str, float | None],
    baseline: dict[str, float] | None = None,
) -> Finding:
    (found,) = diagnose([NodeResults("a", metrics)], parse_rules(rules_of(**rules)), baseline or {})
    return found


def test_a_value_below_its_baseline_is_a_defect_with_figures() -> None:
    found = judged({"r": variance("mem-bw/bw:\\d+")}, {"mem-bw/bw:0": 90.0}, {"mem-bw/bw": 100})
    assert (found.defective, found.categories) == (True, ("Mem",))
    assert found.details == ("mem-bw/bw:0(B/L: 100.0000 VAL: 90.0000 VAR: -10.00% Rule:lambda x: x < -0.05)",)


def test_a_missing_metric_is_told_but_convicts_no_one() -> None:
    found = judged({"r": variance("mem-bw/bw")}, {"mem-bw/bw": None}, {"mem-bw/bw": 1})
    assert (found.defective, found.details, found.categories) == (False, ("mem-bw/bw_miss",), ("FailedTest",))


def test_a_failure_check_convicts_for_what_is_missing() -> None:
    rule = {
        "function": "failure_check",
        "criteria": "lambda x: x > 0",
        "categories": "Failed",
        "metrics": ["a/return_code", "b/return_code"],
    }
    found = judged({"r": rule}, {"a/return_code": 0})
    assert (found.defective, found.details) == (True, ("b/return_code_miss",))


def test_rules_with_an_annotated_benchmark_meet_its_results() -> None:
    found = judged(
        {"r": variance("nccl-bw:nvlink/.*_busbw")},
        {"nccl-bw:nvlink/a_busbw": 8},
        {"nccl-bw:nvlink/a_busbw": 10},
    )
    assert found.defective


def test_a_stored_rule_counts_for_another_and_convicts_no_one_itself() -> None:
    stored = variance("m/a", "m/b", store=True)
    both = {"function": "multi_rules", "categories": "Both", "criteria": 'lambda label: label["s"] >= 2'}
    usual = {"m/a": 1.0, "m/b": 1.0}
    one = judged({"s": stored, "both": both}, {"m/a": 0.5, "m/b": 1}, usual)
    two = judged({"s": stored, "both": both}, {"m/a": 0.5, "m/b": 0.5}, usual)
    assert (one.defective, two.defective, two.categories) == (False, True, ("Both",))


def test_a_rule_that_stores_values_gives_them_to_another() -> None:
    store = {"categories": "c", "store": True, "metrics": ["m/.*"]}
    spread = 'lambda label: max(label["s"].values()) > 2 * min(label["s"].values())'
    rule = {"function": "multi_rules", "categories": "Uneven", "criteria": spread}
    assert judged({"s": store, "r": rule}, {"m/a": 1, "m/b": 3}).defective


def test_asking_for_a_rule_that_was_not_stored_is_refused() -> None:
    rule = {"function": "multi_rules", "categories": "c", "criteria": 'lambda label: label["s"] > 1'}
    with pytest.raises(
        InvalidRulesError, match=r"rule r: criteria ask for 's', which no rule before it stores"
    ):
        judged({"r": rule}, {"m/a": 1})


@pytest.mark.parametrize(("baseline", "complaint"), [({}, "no baseline"), ({"m/a": 0.0}, "a baseline of 0")])
def test_variance_without_a_baseline_is_refused(baseline: dict[str, float], complaint: str) -> None:
    with pytest.raises(InvalidRulesError, match=f"rule r: m/a has {complaint}"):
        judged({"r": variance("m/a")}, {"m/a": 1}, baseline)


@pytest.mark.parametrize(
    ("rule", "complaint"),
    [
        ({"metircs": ["m/a"]}, "rule r: has no key 'metircs'"),
        ({"function": "variance"}, "rule r: categories must be a text"),
        (variance("m/a", store="yes"), "rule r: store must be true or false"),
        ({**variance("m/a"), "function": "variants"}, "rule r: function 'variants' is none of"),
        (variance("m/a", criteria="lambda x: open(x)"), "rule r: criteria: character 11"),
        (variance("m/a", criteria="lambda x: x"), "rule r: criteria 'lambda x: x' give 0 for 0"),
        (variance("m/a", criteria="lambda x: 1 / x > 1"), "fail for 0: division by zero"),
        (variance(), "rule r: metrics must be a list of patterns"),
        (variance("m/("), "rule r: metrics: 'm/(' is no regular expression"),
    ],
)
def test_a_bad_rule_is_refused_by_name(rule: dict[str, Any], complaint: str) -> None:
    with pytest.raises(InvalidRulesError) as raised:
        parse_rules(rules_of(r=rule))
    assert complaint in str(raised.value)


@pytest.mark.parametrize("payload", [b"a: [", b"[]", b"superbench: {rules: {}}", b"!!python/object:os.x {}"])
def test_what_is_no_rule_file_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidRulesError, match="rule file"):
        parse_rules(payload)


@pytest.mark.parametrize("payload", [b"{", b"[]", b'{"a": "1"}', b'{"a": NaN}', b'{"a": true}'])
def test_what_is_no_baseline_is_refused(payload: bytes) -> None:
    with pytest.raises(InvalidRulesError, match="baseline"):
        parse_baseline(payload)


def test_a_baseline_is_found_by_name_then_without_rank_then_by_benchmark() -> None:
    baseline = {"m/a:1": 1.0, "m/a": 2.0, "n": 3.0, "nccl-bw:nvlink/x": 4.0}
    asked = ["m/a:1", "m/a:10", "n/b", "nccl-bw:nvlink/x", "n/b:0"]
    assert [baseline_of(baseline, name) for name in asked] == [1, 2, 3, 4, None]


def test_a_node_that_is_there_twice_is_refused() -> None:
    with pytest.raises(InvalidRulesError, match="node a has two lines"):
        diagnose([NodeResults("a", {}), NodeResults("a", {})], (), {})


@pytest.mark.skipif(DIRECTORY is None, reason="SUPERBENCH_DIR is not set: the real files are not here")
def test_real_nodes_are_judged_as_superbench_judges_them() -> None:
    directory = Path(str(DIRECTORY))
    read = {
        name: (directory / name).read_bytes() for name in ("results.jsonl", "baseline.json", "rules.yaml")
    }
    found = diagnose(
        parse_results(read["results.jsonl"]),
        parse_rules(read["rules.yaml"]),
        parse_baseline(read["baseline.json"]),
    )
    assert [one.categories for one in found if one.defective] == [("KernelLaunch",), ("FailedTest",)]
    assert "mem-bw/return_code(VAL: 1.0000 Rule:lambda x:x>0)" in found[2].details
