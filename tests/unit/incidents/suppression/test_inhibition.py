"""Inhibition as Alertmanager has it: a key decides, and agrees with the rule read literally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.suppression.rules import Matcher, Rule, equal_from, sides
from incidents.domain.values import InvalidValueError

ID = UUID("11111111-1111-4111-8111-111111111111")
DOWN = Rule(
    ID,
    "cluster-down",
    (Matcher("alertname", "ClusterDown"),),
    (Matcher("severity", "warning|info", is_regex=True),),
    ("cluster",),
)
Labels = Mapping[str, str]


def muted(rule: Rule, target: Labels, *firing: Labels) -> bool:
    """As the machinery does it: by keys."""
    key = sides(rule, target).muted_by
    return key is not None and any(key in sides(rule, one).mutes for one in firing)


def literally(rule: Rule, target: Labels, firing: Sequence[Labels]) -> bool:
    """As the documentation says it."""
    if not rule.is_target(target):
        return False
    both = rule.is_source(target)
    return any(
        rule.is_source(one)
        and all(one.get(name, "") == target.get(name, "") for name in rule.equal)
        and not (both and rule.is_target(one))
        for one in firing
    )


SOURCE = {"alertname": "ClusterDown", "cluster": "a", "severity": "critical"}


def test_a_target_with_the_same_labels_is_muted() -> None:
    assert muted(DOWN, {"severity": "warning", "cluster": "a"}, SOURCE)


def test_a_target_with_other_labels_is_not() -> None:
    assert not muted(DOWN, {"severity": "warning", "cluster": "b"}, SOURCE)


def test_what_is_no_target_is_not() -> None:
    assert not muted(DOWN, {"severity": "critical", "cluster": "a"}, SOURCE)


def test_a_missing_label_and_an_empty_one_are_equal() -> None:
    assert muted(DOWN, {"severity": "info"}, {"alertname": "ClusterDown", "cluster": ""})


def test_an_alert_does_not_inhibit_itself() -> None:
    both = {"alertname": "ClusterDown", "severity": "warning", "cluster": "a"}
    assert not muted(DOWN, both, both, dict(both))


def test_what_is_both_is_muted_by_what_is_only_a_source() -> None:
    assert muted(DOWN, {"alertname": "ClusterDown", "severity": "warning", "cluster": "a"}, SOURCE)


def test_another_edition_of_a_rule_has_other_keys() -> None:
    newer = Rule(UUID(int=1), DOWN.name, DOWN.source, DOWN.target, DOWN.equal)
    assert not sides(newer, SOURCE).mutes & sides(DOWN, SOURCE).mutes


LABELS = st.dictionaries(st.sampled_from("abc"), st.sampled_from(["", "x", "y"]))
MATCHERS = st.lists(
    st.builds(
        Matcher, st.sampled_from("abc"), st.sampled_from(["x", "y", "x|y"]), st.booleans(), st.booleans()
    ),
    min_size=1,
    max_size=2,
).map(tuple)
RULES = st.builds(
    Rule,
    st.just(ID),
    st.just("r"),
    MATCHERS,
    MATCHERS,
    st.lists(st.sampled_from("abc"), unique=True).map(tuple),
)


@given(RULES, LABELS, st.lists(LABELS, max_size=4))
def test_keys_decide_as_the_documentation_says(rule: Rule, target: Labels, firing: list[Labels]) -> None:
    assert muted(rule, target, *firing) == literally(rule, target, firing)


@pytest.mark.parametrize("value", [7, "cluster", [""], ["a", "a"], [7], ["x"] * 51])
def test_what_names_no_labels_is_refused(value: object) -> None:
    with pytest.raises(InvalidValueError, match="equal"):
        equal_from(value)
