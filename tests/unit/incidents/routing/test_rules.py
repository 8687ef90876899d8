from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.routing.explain import explain
from incidents.domain.routing.rules import (
    Conditions,
    Grouping,
    RouteCache,
    Routing,
    RoutingTable,
    Rule,
    Service,
    Subject,
    Team,
    covers,
    every_rule,
    labels_that_count,
    ordinal,
    route,
    service_of,
    team_of,
)
from incidents.domain.suppression.rules import Matcher

NETWORK, STORAGE, ON_CALL = Team("network", "Network"), Team("storage", "Storage"), Team("on-call", "On-call")


def rule(name: str, pattern: str = "", team: Team | None = None, **more: Any) -> Rule:
    when = more.pop("when", Conditions())
    return Rule(name, replace(when, pattern=pattern), team, **more)


TABLE = RoutingTable(
    [rule("tors", "tor/*", NETWORK), rule("dc1", "*/dc1-*", STORAGE), rule("disks", "disk/*", STORAGE)],
    ON_CALL,
)
PROD = Conditions(labels=(Matcher("env", "prod"),))
NIGHT = rule("night", when=PROD, severity="critical", policy="night")
TREE = RoutingTable(
    [
        rule("disks", "disk/*", STORAGE, policy="day", children=(NIGHT, rule("rest", severity="info"))),
        rule("rest-of-all", team=NETWORK),
    ],
    ON_CALL,
)


def to(
    component: str | None, table: RoutingTable = TABLE, others: Iterable[str] = (), **more: Any
) -> Routing:
    return route(Subject(component, **more), table, others)


def test_the_first_rule_that_matches_decides_and_says_so() -> None:
    routing = to("tor/dc1-t12", TABLE)
    assert (routing.team, routing.rule, routing.path) == ("network", 1, ("tors",))
    assert routing.explanation == "routed to Network because rule `tors` (1st) matched `tor/*`"


def test_a_pattern_may_ask_for_the_name_alone() -> None:
    assert to("host/dc1-9", TABLE).team == "storage"


def test_what_no_rule_matches_goes_to_the_default_team() -> None:
    assert to("vm/9", TABLE).explanation == "routed to On-call because no rule matches `vm/9`"


def test_what_names_no_component_goes_to_the_default_team() -> None:
    assert to(None, TABLE).explanation == "routed to On-call because no component"


def test_what_names_no_component_is_routed_by_its_labels() -> None:
    assert to(
        None, RoutingTable([rule("prod", when=PROD, team=STORAGE)], ON_CALL), labels={"env": "prod"}
    ).team == ("storage")


def test_an_ambiguous_partner_of_another_team_is_mentioned() -> None:
    explanation = to("disk/7", TABLE, ["tor/t1"]).explanation
    assert explanation.endswith("; `tor/t1`, indistinguishable in the data, belongs to Network")


def test_an_ambiguous_partner_of_the_same_team_is_not() -> None:
    assert ";" not in to("disk/7", TABLE, ["disk/8"]).explanation


def test_matching_heeds_case() -> None:
    assert to("tor/A", RoutingTable([rule("a", "tor/a", NETWORK)], ON_CALL)).rule is None


def test_the_deepest_rule_that_matches_decides_and_has_the_rest_from_those_above() -> None:
    routing = to("disk/7", TREE, labels={"env": "prod"})
    assert (routing.team, routing.severity, routing.policy) == ("storage", "critical", "night")
    assert routing.path == ("disks", "night")


def test_the_way_down_the_tree_is_told() -> None:
    assert to("disk/7", TREE, labels={"env": "prod"}).explanation == (
        "routed to Storage because rule `disks` (1st) matched `disk/*`, in it `night` (1st) matched"
        ' `env="prod"`; its rule makes it critical'
    )


def test_no_other_branch_is_tried_once_a_rule_matched() -> None:
    only = RoutingTable(
        [rule("disks", "disk/*", STORAGE, children=(NIGHT,)), rule("all", team=NETWORK)], ON_CALL
    )
    assert (to("disk/7", only).team, to("disk/7", only).policy) == ("storage", None)


def test_what_a_rule_groups_its_children_group_too_unless_they_say() -> None:
    by_rack, alone = Grouping(("rack",)), Grouping(("...",), timedelta(hours=1))
    tree = RoutingTable(
        [rule("a", grouping=by_rack, children=(rule("b", "x/*", grouping=alone), rule("c")))], ON_CALL
    )
    assert (to("x/1", tree).grouping, to("y/1", tree).grouping) == (alone, by_rack)


def test_suggestions_are_followed_where_the_deepest_rule_that_says_something_says_so() -> None:
    no = rule("no", "x/*", follow_suggestion=False)
    tree = RoutingTable([rule("a", follow_suggestion=True, children=(no, rule("open")))], ON_CALL)
    assert (to("x/1", tree).follow_suggestion, to("y/1", tree).follow_suggestion) == (False, True)
    assert to("y/1", tree).explanation.endswith("; auto-assign to the predicted team, if any")
    assert not to("y/1", RoutingTable([], ON_CALL)).follow_suggestion


def test_a_rule_may_ask_for_the_analyzer_and_its_confidence() -> None:
    sure = rule("sure", when=Conditions(analyzer="deepview", min_confidence=0.9), team=STORAGE)
    table = RoutingTable([sure], ON_CALL)
    teams = [to("vm/1", table, analyzer="deepview", confidence=share).team for share in (0.9, 0.89, None)]
    assert teams == ["storage", "on-call", "on-call"]


# Services
# ----------------------------------------------------------------------------------------------------------
SERVICES = {
    one.slug: one
    for one in (
        Service("block", "Block storage", STORAGE, ("disk/*", "storage_cluster/*")),
        Service("hot", "Hot storage", NETWORK, ("disk/nvme-*",)),
        Service("nobodys", "Nobody's", None, ("lamp/*",)),
    )
}
OWNED = RoutingTable([rule("hot", when=Conditions(service="hot"), severity="critical")], ON_CALL, SERVICES)


def test_a_component_belongs_to_the_service_with_the_most_specific_pattern() -> None:
    assert [service_of(Subject(name), SERVICES) for name in ("disk/nvme-1", "disk/1", "tor/1")] == [
        "hot",
        "block",
        None,
    ]


def test_an_alert_may_name_its_service_in_a_label() -> None:
    assert service_of(Subject("tor/1", {"service": "block"}), SERVICES) == "block"
    assert service_of(Subject("tor/1", {"service": "unheard-of"}), SERVICES) is None


def test_what_no_rule_matches_goes_to_the_team_of_its_service() -> None:
    routing = to("disk/1", OWNED)
    assert (routing.team, routing.service) == ("storage", "block")
    assert (
        routing.explanation
        == "routed to Storage because no rule matches and it has the service Block storage"
    )


def test_a_rule_without_a_team_leaves_it_to_the_service() -> None:
    assert to("disk/nvme-1", OWNED).explanation == (
        "routed to Network because rule `hot` (1st) matched service `hot`; it has the service Hot storage;"
        " its rule makes it critical"
    )


def test_a_service_without_a_team_leaves_it_to_the_default() -> None:
    assert (to("lamp/1", OWNED).team, to("lamp/1", OWNED).service) == ("on-call", "nobodys")


def test_a_rule_may_name_another_service() -> None:
    table = replace(OWNED, rules=[rule("all", service="hot")])
    assert (to("disk/1", table).service, to("disk/1", table).team) == ("hot", "network")


# Explaining
# ----------------------------------------------------------------------------------------------------------
def test_every_rule_says_why_it_did_or_did_not_take_part() -> None:
    told = {(one.rule, one.depth): one.sentence for one in explain(Subject("disk/7"), TREE).rules}
    assert told == {
        ("disks", 0): "1st of its level: matched `disk/*`",
        ("night", 1): '`env="prod"` does not match: no label env',
        ("rest", 1): "2nd of its level: matched everything",
        ("rest-of-all", 0): "not tried, because `disks` before it matched",
    }


def test_what_is_beneath_a_rule_that_did_not_match_is_not_tried() -> None:
    told = explain(Subject("tor/7"), TREE).rules
    assert [(one.rule, one.outcome) for one in told] == [
        ("disks", "did_not_match"),
        ("night", "not_tried"),
        ("rest", "not_tried"),
        ("rest-of-all", "matched"),
    ]


# Whatever the rules
# ----------------------------------------------------------------------------------------------------------
WORDS = st.sampled_from(["a", "b", "c"])
SUBJECTS = st.builds(
    Subject,
    component=st.none() | st.builds("{}/{}".format, WORDS, WORDS),
    labels=st.dictionaries(WORDS, WORDS, max_size=2),
    analyzer=st.none() | WORDS,
    confidence=st.none() | st.sampled_from([0.0, 0.5, 1.0]),
    severity=st.none() | st.sampled_from(["critical", "info"]),
    integration=st.none() | WORDS,
)
CONDITIONS = st.builds(
    Conditions,
    pattern=st.sampled_from(["", "", "a/*", "*/b", "c/c"]),
    labels=st.lists(
        st.builds(Matcher, WORDS, st.sampled_from(["", "a", "b"]), is_equal=st.booleans()), max_size=1
    ).map(tuple),
    analyzer=st.sampled_from(["", "", "a"]),
    integration=st.sampled_from(["", "", "b"]),
    severities=st.sampled_from([(), (), ("critical",)]),
    min_confidence=st.sampled_from([None, None, 0.5]),
)
TEAMS = st.sampled_from([None, NETWORK, STORAGE])


def rules_of(children: Any) -> Any:
    return st.lists(
        st.builds(
            Rule,
            name=st.uuids().map(str),
            when=CONDITIONS,
            team=TEAMS,
            policy=st.sampled_from([None, "p", "q"]),
            severity=st.sampled_from([None, "error"]),
            children=children,
        ),
        max_size=3,
    ).map(tuple)


TREES = st.recursive(st.just(()), rules_of, max_leaves=8)
TABLES = st.builds(RoutingTable, rules=TREES, default=st.just(ON_CALL))


@given(SUBJECTS, TABLES)
def test_a_rule_holds_exactly_when_there_is_no_reason_why_not(subject: Subject, table: RoutingTable) -> None:
    for one in every_rule(table.rules):
        assert one.when.hold(subject) == (one.when.why_not(subject) is None)


@given(SUBJECTS, TABLES)
def test_the_path_is_what_the_explanation_says_matched(subject: Subject, table: RoutingTable) -> None:
    explained = explain(subject, table)
    matched = tuple(one.rule for one in explained.rules if one.outcome == "matched")
    assert explained.routing.path == matched == route(subject, table).path
    assert len(explained.rules) == sum(1 for _ in every_rule(table.rules))


@given(SUBJECTS, TABLES)
def test_the_first_that_matches_wins_on_every_level(subject: Subject, table: RoutingTable) -> None:
    """The obvious way: go down by hand, and keep what was said last."""
    level, team, policy, severity = table.rules, None, None, None
    while found := [one for one in level if one.when.why_not(subject) is None][:1]:
        team, policy = found[0].team or team, found[0].policy or policy
        severity, level = found[0].severity or severity, found[0].children
    routing = route(subject, table)
    assert (routing.team, routing.policy, routing.severity) == ((team or ON_CALL).slug, policy, severity)
    assert team_of(subject, table).slug == routing.team


@given(st.lists(SUBJECTS, max_size=6), TABLES)
def test_a_decision_that_was_taken_before_is_the_one_that_would_be_taken(
    subjects: list[Subject], table: RoutingTable
) -> None:
    cache = RouteCache(table)
    assert [cache.route(one) for one in subjects] == [route(one, table) for one in subjects]


def test_decisions_taken_before_know_the_services_of_components() -> None:
    services = {
        "a": Service("a", "A", NETWORK, ("host/a*",)),
        "b": Service("b", "B", STORAGE, ("host/b*",)),
    }
    hosts = Rule("hosts", Conditions(pattern="host/*"), severity="error")
    table = RoutingTable([hosts], ON_CALL, services)
    cache = RouteCache(table)
    subjects = [
        Subject(component=name, labels=labels)
        for name in ("host/a1", "host/b1", "host/a2", "host/c", "tor/1", None)
        for labels in ({}, {"service": "b"}, {"x": "y"})
    ]
    assert [cache.route(one) for one in subjects] == [route(one, table) for one in subjects]
    assert len({route(one, table).team for one in subjects}) == 3


@pytest.mark.parametrize(
    "globs", [("host/*", "disk/*"), ("host/*", "*"), ("host/a*", "disk/*"), ("host*", "tor/?")]
)
def test_decisions_taken_before_are_right_for_other_components_of_the_kind(globs: tuple[str, str]) -> None:
    rules = [rule("all", globs[0], NETWORK, children=(rule("deep", globs[1], STORAGE),)), rule("b", globs[1])]
    services = {"a": Service("a", "A", STORAGE, ("disk/*",))}
    for table in (RoutingTable(rules, ON_CALL), RoutingTable(rules, ON_CALL, services)):
        cache = RouteCache(table)
        names = ("host/a", "host/b", "disk/a/b", "disk/", "disk", "host", "tor/1", "tor/2", "/", "", None)
        subjects = [Subject(component=name) for name in (*names, *reversed(names))]
        assert [cache.route(one) for one in subjects] == [route(one, table) for one in subjects]


@given(SUBJECTS, TABLES, WORDS, WORDS)
def test_labels_that_no_rule_names_change_nothing(
    subject: Subject, table: RoutingTable, name: str, value: str
) -> None:
    if name not in labels_that_count(table):
        other = msgspec.structs.replace(subject, labels={**subject.labels, name: value})
        assert route(other, table).path == route(subject, table).path


def test_places_are_told_as_people_count() -> None:
    assert [ordinal(n) for n in (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)] == [
        "1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd", "111th",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("broad", "narrow", "yes"),
    [
        ("*", "tor/*", True), ("tor/*", "tor/a?", True), ("tor/*", "*", False), ("tor/?", "tor/*", False),
        ("tor/?", "tor/?", True), ("[!a]*", "b", False), ("tor/*-1", "tor/dc[ab]-1", True), ("tor/a", "tor/ab", False),
    ],
)  # fmt: skip
def test_a_glob_covers_another_only_where_that_is_sure(broad: str, narrow: str, yes: bool) -> None:
    assert covers(broad, narrow) == yes
