"""Routes and services over HTTP, and what they make of alerts and reports."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
from django.db import connections
from django.test import Client
from django.utils import timezone

from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.routing.rules import Subject, every_rule, route
from incidents.follower import follower
from incidents.incident.models import IncidentRow
from incidents.incident.rebuild import rebuild
from incidents.teams.models import Route, Team, routing_table
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.integrations.normalized import Alert, Parsed
from ingest.queries import Context, configured
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")
Call = Callable[..., Any]


@pytest.fixture
def api(client: Any) -> Call:
    key = keys.create("alice", ["admin"])

    def call(method: str, path: str, body: Any = None) -> Any:
        told = "" if body is None else json.dumps(body)
        return client.generic(
            method, f"/api/v1/{path}", told, "application/json", HTTP_AUTHORIZATION=f"Bearer {key}"
        )

    return call


def alert(key: str, **more: Any) -> Alert:
    return Alert(key, "firing", **{"title": f"{key} is slow", "group": "Slow", **more})


def send(*alerts: Alert, integration: str = "prometheus") -> None:
    receive(Parsed(alerts), Delivery(integration, "test", "application/json", b"{}"))
    follow_to_the_end(follower())


def incidents_of(service: str) -> list[queries.Incident]:
    found = queries.list_incidents(queries.parse_filters({"service": [service]}), limit=200).items
    return [view.incident for view in found]


def made(api: Call, path: str, **body: Any) -> Any:
    answer = api("POST", path, body)
    assert answer.status_code == 201, answer.content
    return answer.json()


# The tree
# ----------------------------------------------------------------------------------------------------------
def test_the_routes_of_a_new_installation_have_names_and_mean_what_they_meant() -> None:
    assert route(Subject("disk/d7"), routing_table()).path == ("disk",)
    assert list(Route.objects.values_list("name", flat=True))[:3] == ["tor", "t2", "t3"]


def test_the_old_form_of_a_route_still_makes_one(api: Call) -> None:
    route = made(api, "routes", order=900, pattern="lamp/*", team="compute")
    assert (route["name"], route["parent"], route["when"], route["order"]) == ("lamp", None, {}, 900)
    assert api("PATCH", f"routes/{route['id']}", {"order": 901}).json()["order"] == 901
    assert api("DELETE", f"routes/{route['id']}").status_code == 204


def test_a_rule_beneath_another_is_changed_by_its_name_and_recorded_by_it(api: Call) -> None:
    made(api, "routes", name="lamps", pattern="lamp/*", team="compute")
    made(
        api, "routes", name="lamps-at-night", parent="lamps", when={"hours": ["22:00-06:00"]}, policy="night"
    )
    changed = api(
        "PATCH",
        "routes/lamps-at-night",
        {"severity": "info", "grouping": {"by": ["row"]}, "follow_suggestion": True},
    ).json()
    assert (changed["grouping"], changed["follow_suggestion"]) == (
        {"by": ["row"], "window_seconds": None},
        True,
    )
    created, patched = configured("route", "lamps-at-night")
    assert (created.body["after"]["policy"], patched.body["after"]["severity"]) == ("night", "info")


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"parent": "no-such"}, "parent"),
        ({"name": "12"}, "name"),
        ({"name": "tor"}, "name"),
        ({"when": {"labels": ["("]}}, "when"),
        ({"when": "x"}, "when"),
        ({"grouping": {"by": "x"}}, "grouping"),
        ({"severity": "loud"}, "severity"),
        ({"policy": "a b"}, "policy"),
        ({"pattern": "tor"}, "pattern"),
        ({"pattern": "a/\u0000"}, "pattern"),
        ({"order": 2**40}, "order"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_a_rule_that_makes_no_sense_is_refused_by_field_and_not_kept(
    api: Call, body: Any, field: str
) -> None:
    before = Route.objects.count()
    answer = api("POST", "routes", {"team": "compute", **body})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])
    assert Route.objects.count() == before


def test_no_rule_stands_beneath_itself(api: Call) -> None:
    made(api, "routes", name="upper", pattern="lamp/*")
    made(api, "routes", name="lower", parent="upper")
    answer = api("PATCH", "routes/upper", {"parent": "lower"})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, ["parent"])
    assert Route.objects.get(name="upper").parent is None


def test_a_rule_with_rules_beneath_it_stays(api: Call) -> None:
    made(api, "routes", name="upper", pattern="lamp/*")
    made(api, "routes", name="lower", parent="upper")
    assert api("DELETE", "routes/upper").status_code == 409


def test_rules_of_one_order_are_tried_by_name_and_one_that_asks_nothing_takes_all(api: Call) -> None:
    made(api, "routes", order=0, name="b-all", team="compute")
    made(api, "routes", order=0, name="a-lamps", pattern="lamp/*", team="network")
    paths = [route(Subject(name), routing_table()).path for name in ("lamp/l1", "tor/t1")]
    assert paths == [("a-lamps",), ("b-all",)]


def test_a_rule_is_put_last_unless_it_says_where(api: Call) -> None:
    first, second = (made(api, "routes", name=name, parent="tor")["order"] for name in ("one", "two"))
    assert second == first + 1


# Services
# ----------------------------------------------------------------------------------------------------------
def test_a_service_gives_its_name_and_its_team_to_tickets(api: Call) -> None:
    made(api, "services", slug="lamps", name="Lamps", team="network", patterns=["lamp/*"])
    opened = commands.open_incident(Report("It is dark", component="lamp/l1"), Context("user:alice")).incident
    assert (opened.service, opened.team) == ("lamps", "network")
    assert api("GET", f"incidents/{opened.number}").json()["service"] == "lamps"


def test_a_service_names_those_that_it_depends_on(api: Call) -> None:
    made(api, "services", slug="power", name="Power", patterns=["feed/*"])
    made(api, "services", slug="lamps", name="Lamps", depends_on=["power"])
    assert api("DELETE", "services/power").json()["detail"] == "Lamps depends on Power; change that first."
    assert configured("service", "lamps")[-1].body["after"]["depends_on"] == ["power"]


def test_a_service_does_not_depend_on_itself_or_on_nothing(api: Call) -> None:
    made(api, "services", slug="power", name="Power")
    for wrong in (["power"], ["no-such"], "power", [None]):
        assert api("PATCH", "services/power", {"depends_on": wrong}).status_code == 400


def test_a_service_that_a_route_names_stays_and_so_does_its_team(api: Call) -> None:
    made(api, "services", slug="power", name="Power", team="services")
    made(api, "routes", name="feeds", pattern="feed/*", service="power")
    assert api("DELETE", "services/power").status_code == 409
    assert api("DELETE", "teams/services").status_code == 409


# What rules make of alerts
# ----------------------------------------------------------------------------------------------------------
def test_a_rule_decides_severity_policy_and_service_of_an_alert(api: Call) -> None:
    made(api, "services", slug="dim", name="Dim lamps")
    rule = {"team": "compute", "service": "dim", "severity": "info", "policy": "in-the-morning"}
    made(api, "routes", name="dim", pattern="lamp/dim-*", **rule)
    send(alert("dim-1", component="lamp/dim-1", severity="critical"))
    (one,) = incidents_of("dim")
    assert (one.severity, one.policy, one.team) == ("info", "in-the-morning", "compute")


def test_an_alert_that_gets_worse_is_as_bad_as_its_rule_says(api: Call) -> None:
    made(api, "services", slug="calm", name="Calm lamps")
    made(api, "routes", name="calm", pattern="lamp/calm-*", service="calm", severity="info")
    for severity in ("warning", "critical"):
        send(alert("calm-1", component="lamp/calm-1", severity=severity))
    assert [one.severity for one in incidents_of("calm")] == ["info"]


def test_a_rule_groups_by_labels_whatever_rule_or_integration_fired(api: Call) -> None:
    made(api, "services", slug="racks", name="Racks")
    made(api, "routes", name="racks", pattern="lamp/r-*", service="racks", grouping={"by": ["rack"]})
    send(alert("r-1", component="lamp/r-1", labels={"rack": "r1"}), alert("r-2", component="lamp/r-2"))
    send(alert("r-3", component="lamp/r-3", group="Hot", labels={"rack": "r1"}), integration="grafana")
    assert sorted(one.alerts for one in incidents_of("racks")) == [1, 2]


def test_after_its_window_a_group_opens_a_new_ticket(api: Call) -> None:
    made(api, "services", slug="windows", name="Windows")
    grouping = {"by": [], "window_seconds": 3600}
    made(api, "routes", name="windows", pattern="lamp/w-*", service="windows", grouping=grouping)
    send(alert("w-1", component="lamp/w-1"))
    send(alert("w-2", component="lamp/w-2"))
    (first,) = incidents_of("windows")
    IncidentRow.objects.filter(pk=first.id).update(opened_at=timezone.now() - timedelta(minutes=61))
    send(alert("w-3", component="lamp/w-3"))
    assert [one.alerts for one in incidents_of("windows")] == [1, 2]


def test_a_group_whose_ticket_is_resolved_opens_a_new_one(api: Call) -> None:
    made(api, "services", slug="done", name="Done")
    grouping = {"by": None, "window_seconds": 3600}
    made(api, "routes", name="done", pattern="lamp/d-*", service="done", grouping=grouping)
    send(alert("d-1", component="lamp/d-1"))
    commands.resolve(incidents_of("done")[0].id, "none", "", Context("user:alice"))
    send(alert("d-2", component="lamp/d-2"))
    assert [one.state for one in incidents_of("done")] == ["open", "resolved"]


def test_an_alert_of_a_group_goes_where_its_ticket_was_merged_into(api: Call) -> None:
    made(api, "services", slug="mg", name="Merged")
    made(api, "routes", name="mg", pattern="lamp/m-*", service="mg", grouping={"by": ["row"]})
    send(
        alert("m-1", component="lamp/m-1", labels={"row": "1"}),
        alert("m-2", component="lamp/m-2", labels={"row": "2"}),
    )
    two, one = incidents_of("mg")
    commands.merge(two.id, one.id, "", Context("user:alice"))
    send(alert("m-3", component="lamp/m-3", labels={"row": "2"}))
    assert queries.get(one.id).incident.alerts == 3


def test_labels_as_long_as_they_come_still_group(api: Call) -> None:
    made(api, "services", slug="long", name="Long")
    grouping = {"by": ["a", "b", "c", "d"], "window_seconds": 60}
    made(api, "routes", name="long", pattern="lamp/long-*", service="long", grouping=grouping)
    labels = {name: name * 990 for name in "abcd"}
    send(
        alert("long-1", component="lamp/long-1", labels=labels),
        alert("long-2", component="lamp/long-2", labels=labels),
    )
    assert [one.alerts for one in incidents_of("long")] == [2]


def test_a_rebuild_gives_tickets_what_their_routes_decided(api: Call) -> None:
    made(api, "services", slug="again", name="Again")
    made(
        api,
        "routes",
        name="again",
        pattern="lamp/a-*",
        service="again",
        policy="p",
        grouping={"by": ["rack"]},
    )
    send(alert("a-1", component="lamp/a-1", labels={"rack": "r1"}))
    assert rebuild().differed == ()
    assert [one.policy for one in incidents_of("again")] == ["p"]


def test_two_who_put_each_ones_rule_beneath_the_others_leave_a_tree() -> None:
    """Both at once, many times: one of them is refused, and nothing hangs on nothing."""
    keys_ = [keys.create(name, ["admin"]) for name in ("alice", "bob")]
    Route.objects.bulk_create(Route(name=name, order=900, pattern="lamp/*") for name in ("left", "right"))

    def put(key: str, name: str, parent: str | None) -> int:
        try:
            answer = Client().patch(
                f"/api/v1/routes/{name}",
                json.dumps({"parent": parent}),
                "application/json",
                headers={"Authorization": f"Bearer {key}"},
            )
            return int(answer.status_code)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(2) as threads:
        for _ in range(10):
            both = zip(keys_, ("left", "right"), ("right", "left"), strict=True)
            told = sorted(one.result() for one in [threads.submit(put, *args) for args in both])
            assert told in ([200, 400], [200, 409])
            names = {rule.name for rule in every_rule(routing_table().rules)}
            assert {"left", "right"} <= names
            for name in ("left", "right"):
                put(keys_[0], name, None)


# What cannot be read any more
# ----------------------------------------------------------------------------------------------------------
def gone_zone() -> None:
    """As if the time zone had vanished from its database after the rule was made, with a rule beneath it."""
    lost = Route.objects.create(
        name="lost",
        order=0,
        pattern="lamp/*",
        team=Team.objects.get(slug="compute"),
        when={"hours": ["mon-sun 00:00-24:00"], "zone": "Mars/Olympus"},
    )
    Route.objects.create(name="below", parent=lost, order=0, severity="critical")


@pytest.mark.usefixtures("log_database")
def test_a_rule_that_cannot_be_read_is_passed_over_and_the_ticket_says_why() -> None:
    gone_zone()
    send(alert("d1", component="disk/d7"))
    (view,) = queries.list_incidents().items
    assert view.incident.team == "storage"
    assert "; rule `lost`, and 1 other rule was skipped: zone: must be a time zone" in view.incident.routing


def test_other_rules_can_be_changed_while_one_cannot_be_read(api: Call) -> None:
    gone_zone()
    made(api, "routes", name="lamps", order=900, pattern="lamp/*", team="network")
    table = routing_table()
    assert route(Subject("lamp/l1"), table).path == ("lamps",)
    assert table.passed_over["below"] == "its parent `lost` is invalid"
