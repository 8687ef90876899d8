"""Alerts become incidents: each test sends alerts as an endpoint does and lets the follower run."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from django.db import transaction
from django.utils import timezone

from incidents import commands, queries
from incidents.alerts.correlate import place_unsuppressed, unsuppressed_alerts
from incidents.domain.incident.alerts import STORM_INCIDENTS
from incidents.domain.incident.flapping import QUIET
from incidents.domain.incident.state import UNKNOWN
from incidents.follower import follower
from incidents.incident.models import IncidentRow
from incidents.incident.rebuild import rebuild
from incidents.suppression.suppressor import firing_suppressed
from incidents.teams.models import Silence
from incidents.timers import OF_INCIDENTS
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.integrations.normalized import Alert, Parsed
from ingest.queries import Context
from tests.following import follow_to_the_end

ALICE = Context("user:alice")
pytestmark = pytest.mark.usefixtures("log_database")


def alert(key: str = "disk7", status: Any = "firing", **more: Any) -> Alert:
    return Alert(key, status, **{"title": f"{key} is slow", "group": "Slow", **more})


def send(*alerts: Alert, integration: str = "prometheus") -> None:
    receive(Parsed(alerts), Delivery(integration, "test", "application/json", b"{}"))
    follow_to_the_end(follower())


def tickets(state: str | None = None) -> list[queries.View]:
    return [view for view in queries.list_incidents(limit=200).items if state in (None, view.incident.state)]


def ticket(number: int = 1) -> queries.View:
    return queries.get(str(number))


@transaction.atomic
def tidy(now: datetime) -> int:
    return OF_INCIDENTS["flapping incidents"](now)


def texts(number: int = 1) -> list[str]:
    return [entry.text for entry in queries.timeline(str(number))]


def test_an_alert_opens_a_ticket_at_the_team_of_its_component() -> None:
    send(alert(component="storage_cluster/s7", severity="error", labels={"rack": "r1"}))
    (view,) = tickets()
    one = view.incident
    assert (one.title, one.severity, one.team, one.component) == (
        "disk7 is slow",
        "error",
        "storage",
        "storage_cluster/s7",
    )
    assert (one.alerts, one.firing, one.labels) == (1, 1, {"rack": "r1"})


def test_incidents_that_open_later_have_later_ids() -> None:
    before = timezone.now()
    for number in range(3):
        send(alert(f"disk{number}", group=f"rule {number}"))
        commands.open_incident(commands.Report(title="mine"), ALICE)
    begun = [
        UUID(one.incident.id).int >> 80 for one in sorted(tickets(), key=lambda one: one.incident.number)
    ]
    assert [int(before.timestamp() * 1000), *begun] == sorted([int(before.timestamp() * 1000), *begun])
    assert len(begun) == 6
    assert begun[-1] <= timezone.now().timestamp() * 1000


def test_what_one_rule_fires_on_for_one_team_shares_a_ticket() -> None:
    send(
        alert("a", component="storage_cluster/a"),
        alert("b", component="storage_cluster/b", severity="critical"),
    )
    send(alert("c", component="storage_cluster/c"), alert("d", component="tor/d"))
    shared, other = sorted(tickets(), key=lambda view: -view.incident.alerts)
    assert (shared.incident.alerts, shared.incident.severity, shared.incident.team) == (
        3,
        "critical",
        "storage",
    )
    assert (other.incident.alerts, other.incident.team) == (1, "network")
    assert "all Slow alerts of storage from prometheus are grouped" in texts(shared.incident.number)[-1]


def test_alerts_without_a_rule_stand_alone() -> None:
    send(alert("a", group=""), alert("b", group=""))
    assert [view.incident.alerts for view in tickets()] == [1, 1]


def test_a_ticket_is_resolved_once_all_its_alerts_are_over() -> None:
    send(alert("a"), alert("b"))
    send(alert("a", "resolved"))
    assert (ticket().incident.state, ticket().incident.firing) == ("open", 1)
    send(alert("b", "resolved"))
    one = ticket().incident
    assert (one.state, one.confirmed_cause, one.resolved_by) == ("resolved", None, "system:incidents")
    assert texts()[-1] == "Dossier resolved the incident: all alerts resolved"


def test_a_resolved_ticket_swallows_no_alert() -> None:
    for status in ("firing", "resolved", "firing"):
        send(alert(status=status))
    assert [view.incident.state for view in tickets()] == ["open", "resolved"]


def test_an_alert_that_fires_and_is_over_in_one_batch_leaves_a_ticket() -> None:
    send(alert(), alert(status="resolved"))
    assert [view.incident.state for view in tickets()] == ["resolved"]


def test_an_alert_that_gets_worse_makes_its_ticket_worse() -> None:
    send(alert(severity="warning"))
    send(alert(severity="critical"))
    assert ticket().incident.severity == "critical"


def test_a_sender_that_acknowledges_its_alert_acknowledges_the_ticket() -> None:
    send(alert())
    send(alert(status="acknowledged"))
    assert (ticket().incident.state, ticket().incident.acknowledged_by) == ("acknowledged", "key:prometheus")


def test_an_acknowledgement_through_another_integration_changes_nothing() -> None:
    send(alert())
    send(alert(status="acknowledged"), alert(status="resolved"), integration="other")
    assert ticket().incident.state == "open"


def test_an_alert_on_the_component_of_a_finding_joins_its_ticket() -> None:
    from tests.integration.incidents.incident.test_findings import S7, run, suspect

    run(0, suspect(S7, sure=True))
    send(alert(component=S7))
    (view,) = tickets()
    assert (view.incident.alerts, view.incident.firing) == (1, 1)
    assert texts()[-1] == f"an alert fired: disk7 is slow; same component {S7}"
    send(alert(status="resolved", component=S7))
    assert ticket().incident.state == "open"  # the analyzer has not said that it is over


def test_a_storm_of_many_rules_is_one_more_ticket() -> None:
    send(*(alert(f"k{n}", group=f"rule {n}") for n in range(STORM_INCIDENTS + 40)))
    send(*(alert(f"more {n}", group=f"rule more {n}") for n in range(30)))
    found = tickets()
    assert len(found) == STORM_INCIDENTS + 1
    assert max(view.incident.alerts for view in found) == 70
    assert any(
        "storm: prometheus opened more than 100 incidents" in text for text in texts(found[0].incident.number)
    )


def test_a_storm_of_alerts_without_rules_joins_together() -> None:
    send(*(alert(f"k{n}", group="") for n in range(STORM_INCIDENTS + 40)))
    send(*(alert(f"more {n}", group="") for n in range(400)))
    assert storm().incident.alerts == 440
    assert len(queries.incident_events(storm().incident.id)) < 10
    send(*(alert(f"k{n}", "resolved", group="") for n in range(STORM_INCIDENTS)))
    send(alert("k0", group=""))
    assert [view.incident.alerts for view in tickets() if view.incident.state == "open"] == [441]


def titles() -> list[str]:
    return [view.incident.title for view in tickets()]


def test_a_storm_does_not_hide_an_alert_of_higher_severity() -> None:
    send(*(alert(f"node {n}", group="", severity="info") for n in range(STORM_INCIDENTS + 31)))
    send(alert("payment", group="", severity="critical", title="Payment is down"))
    assert titles().count("Payment is down") == 1
    assert storm().incident.severity == "info"


def test_a_storm_of_one_name_does_not_hide_an_alert_of_another() -> None:
    send(
        *(alert(f"node {n}", group="", labels={"alertname": "NodeDown"}) for n in range(STORM_INCIDENTS + 31))
    )
    send(alert("payment", title="Payment is down", group="PaymentDown"))
    send(alert("node again", group="", labels={"alertname": "NodeDown"}))
    assert titles().count("Payment is down") == 1
    assert storm().incident.alerts == 32


def test_a_storm_of_critical_alerts_is_bounded_beside_one_of_information() -> None:
    send(*(alert(f"node {n}", group="", severity="info") for n in range(STORM_INCIDENTS + 40)))
    send(*(alert(f"db {n}", group="", severity="critical") for n in range(STORM_INCIDENTS + 40)))
    assert IncidentRow.objects.count() == 2 * STORM_INCIDENTS + 1


def storm() -> queries.View:
    return next(view for view in tickets() if view.incident.dedup_key.startswith("storm:"))


def test_the_title_of_a_storm_says_how_large_it_is_and_what_on() -> None:
    send(*(alert(f"k{n}", group=f"rule {n}") for n in range(STORM_INCIDENTS)))
    send(*(alert(f"a{n}", group=f"rule a{n}", component=f"tor/t{n}") for n in range(12)))
    assert storm().incident.title == "Storm from prometheus: 10+ alerts on 10+ components of the kind tor"
    send(*(alert(f"b{n}", group=f"rule b{n}", component=f"tor/u{n}") for n in range(40)))
    assert storm().incident.title == "Storm from prometheus: 50+ alerts on 50+ components of the kind tor"
    assert "Dossier changed the title to" in " ".join(texts(storm().incident.number))
    assert storm().incident.component is None  # the first alert's would be one of many
    before = queries.get(storm().incident.id).as_json(UNKNOWN)
    rebuild()
    assert queries.get(storm().incident.id).as_json(UNKNOWN) == before


def test_the_title_that_a_person_gave_a_storm_stays() -> None:
    send(*(alert(f"k{n}", group=f"rule {n}") for n in range(STORM_INCIDENTS + 5)))
    commands.set_title(storm().incident.id, "The cooling of hall 2", ALICE)
    send(*(alert(f"more {n}", group=f"rule more {n}") for n in range(30)))
    assert storm().incident.title == "The cooling of hall 2"
    commands.set_title(storm().incident.id, "Storm from prometheus: 20+ alerts", ALICE)
    send(*(alert(f"again {n}", group=f"rule again {n}") for n in range(70)))
    assert storm().incident.title == "Storm from prometheus: 20+ alerts"


def test_a_large_group_is_named_by_what_its_alerts_share_and_their_number() -> None:
    send(*(alert(f"k{n}", component=f"host/h{n}") for n in range(60)))
    send(alert("a", title="Fan stopped", group="Fan"))
    assert [view.incident.title for view in tickets()] == [
        "Fan stopped",
        "Slow: 50+ alerts on 50+ components of the kind host",
    ]
    send(*(alert(f"f{n}", title="Fan stopped", group="Fan", component="rack/r1") for n in range(20)))
    assert ticket(2).incident.title == "Fan stopped: 20+ alerts on rack/r1"
    assert "Dossier changed the title to" in " ".join(texts(2))
    commands.set_title(ticket(2).incident.id, "Fans of rack 1", ALICE)
    send(*(alert(f"g{n}", title="Fan stopped", group="Fan", component="rack/r1") for n in range(40)))
    assert ticket(2).incident.title == "Fans of rack 1"
    before = [queries.get(str(number)).as_json(UNKNOWN) for number in (1, 2)]
    rebuild()
    assert [queries.get(str(number)).as_json(UNKNOWN) for number in (1, 2)] == before


def test_a_storm_of_one_rule_is_one_row_with_a_count() -> None:
    send(*(alert(f"k{n}") for n in range(1500)))
    (view,) = tickets()
    assert (view.incident.alerts, view.incident.firing) == (1500, 1500)
    assert len(queries.incident_events("1")) < 10
    send(*(alert(f"k{n}", "resolved") for n in range(1500)))
    assert (ticket().incident.firing, ticket().incident.state) == (0, "resolved")


def test_a_flapping_alert_keeps_its_ticket_open_until_it_is_quiet() -> None:
    for _ in range(5):
        send(alert("steady"), alert())
        send(alert(status="resolved"))
    send(alert("steady", "resolved"))
    one = ticket().incident
    assert (one.state, one.firing, one.flapping) == ("open", 0, True)
    assert "flapping" in " ".join(texts())
    assert tidy(timezone.now()) == 0
    assert tidy(timezone.now() + QUIET + timedelta(minutes=1)) == 1
    assert texts()[-1] == "Dossier resolved the incident: no alert has fired for 15 minutes"


def test_a_silenced_alert_calls_nobody_and_says_why(silence: Callable[..., Silence]) -> None:
    silence("rack", "r[12]", regex=True)
    send(alert(labels={"rack": "r1"}), alert("other", labels={"rack": "r3"}))
    assert [view.incident.title for view in tickets()] == ["other is slow"]
    why = firing_suppressed().get().why
    assert why.startswith("silenced by alice until ")
    assert why.endswith('(rack=~"r[12]"): planned work')


def test_an_alert_that_outlives_its_silence_gets_a_ticket(silence: Callable[..., Silence]) -> None:
    until = silence("rack", "r1").ends_at
    send(alert(labels={"rack": "r1"}), alert("over", labels={"rack": "r1"}))
    send(alert("over", "resolved"))
    assert OF_INCIDENTS["suppressed alerts"](until - timedelta(seconds=1)) == 0
    Silence.objects.update(ends_at=timezone.now())
    assert OF_INCIDENTS["suppressed alerts"](timezone.now()) == 1
    assert [view.incident.title for view in tickets()] == ["disk7 is slow"]
    assert not firing_suppressed().exists()


def test_an_alert_that_outlives_one_silence_and_not_another_is_held_by_that(
    silence: Callable[..., Silence],
) -> None:
    first = silence("rack", "r1")
    send(alert(labels={"rack": "r1", "row": "7"}))
    second = silence("row", "7")
    Silence.objects.filter(pk=first.pk).update(ends_at=timezone.now())
    assert OF_INCIDENTS["suppressed alerts"](timezone.now()) == 1
    assert firing_suppressed().get().silence == second.pk
    assert (tickets(), OF_INCIDENTS["suppressed alerts"](timezone.now())) == ([], 0)


def test_what_outlives_its_silence_gets_its_ticket_in_parts(silence: Callable[..., Silence]) -> None:
    silence("rack", "r1")
    send(*(alert(f"d{n}", labels={"rack": "r1"}) for n in range(5)))
    Silence.objects.update(ends_at=timezone.now())
    with transaction.atomic():
        assert [
            place_unsuppressed(unsuppressed_alerts(now := timezone.now(), most=2), now) for _ in range(4)
        ] == [2, 2, 1, 0]
    assert ticket().incident.alerts == 5


def test_what_still_fires_after_a_person_resolved_its_ticket_fires_anew_but_not_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    send(alert())
    resolve_by_hand()
    send(alert())
    assert [view.incident.state for view in tickets()] == ["resolved"]
    monkeypatch.setattr("ingest.alerts.expire.SETTLED", timedelta(0))
    commands.reopen(ticket().incident.id, "", ALICE)
    send(alert("other"))
    resolve_by_hand()
    send(alert("other"))
    assert [view.incident.state for view in tickets()] == ["open", "resolved"]


def resolve_by_hand() -> None:
    commands.resolve(ticket().incident.id, "none", "", ALICE)
    follow_to_the_end(follower())


def test_a_rebuild_finds_nothing_to_correct(silence: Callable[..., Silence]) -> None:
    silence("rack", "r1")
    for status in ("firing", "resolved", "firing"):
        send(alert("a", status), alert("b"), alert("quiet", labels={"rack": "r1"}))
    send(alert("b", severity="critical"), alert("b", "acknowledged"))
    assert rebuild().differed == ()
    assert ticket().incident.firing == 2


@pytest.fixture
def silence() -> Callable[..., Silence]:
    def make(name: str, value: str, *, regex: bool = False) -> Silence:
        now = timezone.now()
        return Silence.objects.create(
            matchers=[{"name": name, "value": value, "isRegex": regex, "isEqual": True}],
            starts_at=now - timedelta(minutes=1),
            ends_at=now + timedelta(hours=1),
            created_by="alice",
            comment="planned work",
        )

    return make
