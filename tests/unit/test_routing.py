from __future__ import annotations

from incidents.domain.routing import Routing, RoutingTable, Rule, Team, route

NETWORK, STORAGE, ON_CALL = Team("network", "Network"), Team("storage", "Storage"), Team("on-call", "On-call")
TABLE = RoutingTable([Rule("tor/*", NETWORK), Rule("*/dc1-*", STORAGE), Rule("disk/*", STORAGE)], ON_CALL)


def test_the_first_rule_that_matches_decides_and_says_so() -> None:
    assert route("tor/dc1-t12", TABLE) == Routing(
        "network", 1, "routed to Network because rule 1 matched `tor/*`"
    )


def test_a_pattern_may_ask_for_the_name_alone() -> None:
    assert route("host/dc1-9", TABLE).team == "storage"


def test_what_no_rule_matches_goes_to_the_default_team() -> None:
    assert route("vm/9", TABLE).explanation == "routed to On-call because no rule matches `vm/9`"


def test_what_names_no_component_goes_to_the_default_team() -> None:
    assert route(None, TABLE).explanation == "routed to On-call because no component was named"


def test_an_ambiguous_partner_of_another_team_is_mentioned() -> None:
    explanation = route("disk/7", TABLE, ["tor/t1"]).explanation
    assert explanation.endswith("; `tor/t1`, which the data cannot tell apart from it, belongs to Network")


def test_an_ambiguous_partner_of_the_same_team_is_not() -> None:
    assert ";" not in route("disk/7", TABLE, ["disk/8"]).explanation


def test_matching_heeds_case() -> None:
    assert route("tor/A", RoutingTable([Rule("tor/a", NETWORK)], ON_CALL)).rule is None
