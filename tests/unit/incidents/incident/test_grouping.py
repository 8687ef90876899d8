"""Alerts that share an incident, as their route says."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from incidents.domain.incident.alerts import Reported, place_of
from incidents.domain.routing.rules import Grouping, Routing


def reported(key: str = "disk7", **more: Any) -> Reported:
    told = {
        "alert": key,
        "integration": "prometheus",
        "key": key,
        "change": "fired",
        "status": "firing",
        "title": key,
        "severity": "warning",
        "group": "Slow",
        "component": "disk/d7",
        "text": "",
        "labels": {},
        "links": (),
        "fired": 1,
    }
    return Reported(**{**told, **more})


def routed(*by: str, window: timedelta | None = None, team: str = "storage") -> Routing:
    return Routing(team, 1, "", ("disks", "racks"), service="block", grouping=Grouping(by, window))


def test_without_a_grouping_one_alert_rule_and_one_team_share_a_ticket() -> None:
    place = place_of(reported(), Routing("storage", 1, "", ("disks",)))
    assert (place.dedup_key, place.group_key) == ("alerts:prometheus:storage:Slow", None)


def test_labels_group_over_integrations_and_alert_rules() -> None:
    one, two = (
        reported(labels={"rack": "r1"}),
        reported("x", integration="grafana", group="", labels={"rack": "r1"}),
    )
    assert place_of(one, routed("rack")).group_key == place_of(two, routed("rack")).group_key
    assert place_of(one, routed("rack")).why == "route racks groups by rack r1"


def test_other_values_are_other_groups_and_so_are_other_teams() -> None:
    one, two = reported(labels={"rack": "r1"}), reported(labels={"rack": "r2"})
    keys = {
        place_of(one, routed("rack")).group_key,
        place_of(two, routed("rack")).group_key,
        place_of(one, routed("rack", team="network")).group_key,
    }
    assert len(keys) == 3


def test_what_an_alert_has_besides_labels_may_group_it() -> None:
    key = place_of(reported(), routed("component", "integration", "rule", "service")).group_key
    assert key == "route:racks:storage:component=disk/d7,integration=prometheus,rule=Slow,service=block"


def test_a_label_goes_before_what_is_called_like_it() -> None:
    assert "component=lamp" in str(
        place_of(reported(labels={"component": "lamp"}), routed("component")).group_key
    )


def test_no_labels_put_all_into_one_ticket_and_dots_each_alone() -> None:
    assert (
        place_of(reported("a"), routed()).group_key
        == place_of(reported("b", group="Hot"), routed()).group_key
    )
    alone = [place_of(reported(key), routed("...")) for key in "ab"]
    assert [place.dedup_key for place in alone] == ["alert:prometheus:a", "alert:prometheus:b"]


def test_tickets_of_one_group_have_keys_of_their_own() -> None:
    place = place_of(reported(), routed("rack", window=timedelta(hours=1)))
    assert place.opened_as(7) != place.opened_as(8)
    assert place.why == "route racks groups by rack none, within 60 minutes of its opening"


def test_long_values_that_differ_at_their_end_alone_are_different_groups() -> None:
    keys = [place_of(reported(labels={"rack": "r" * 900 + end}), routed("rack")).group_key for end in "ab"]
    assert keys[0] != keys[1]
    assert all(len(str(key)) < 250 for key in keys)
