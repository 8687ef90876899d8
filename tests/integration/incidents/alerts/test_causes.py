"""Alerts on what rests on a blamed component join its incident as symptoms, and leave it when the blame is
withdrawn.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.utils import timezone

from incidents import commands, queries
from incidents.alerts import correlate
from incidents.incident.rebuild import rebuild
from incidents.teams.models import Silence
from ingest.queries import read_versions
from tests.integration.incidents.alerts.test_correlate import ALICE, alert, send, texts, ticket, tickets
from tests.integration.incidents.incident.test_findings import START, T12, run, suspect
from tests.integration.ingest.telemetry.test_topology import tell

pytestmark = pytest.mark.usefixtures("log_database")
EARLIER = START - timedelta(days=2)


def rack(*hosts: str, switch: str = T12) -> None:
    for host in hosts:
        tell(EARLIER, f"host/{host}", parents=[switch])


def blame(minutes: int = 0, *components: str) -> None:
    run(minutes, *(suspect(one, sure=True) for one in components or (T12,)))


def host(name: str, group: str = "Slow", **more: str) -> None:
    send(alert(name, component=f"host/{name}", group=group, **more))


def by_component(component: str) -> queries.View:
    (found,) = [one for one in tickets() if one.incident.component == component]
    return found


def test_an_alert_on_what_the_cause_contains_joins_its_ticket() -> None:
    rack("h1")
    blame()
    host("h1")
    assert [one.incident.number for one in tickets()] == [1]
    assert texts()[-1] == "an alert joined as a symptom: h1 is slow; host/h1 is contained in tor/t12"


def test_a_symptom_says_which_silence_could_not_be_read() -> None:
    now = timezone.now()
    Silence.objects.create(
        matchers=[7], starts_at=now, ends_at=now + timedelta(hours=1), comment="", created_by="alice"
    )
    rack("h1")
    blame()
    host("h1")
    assert "host/h1 is contained in tor/t12; the silence" in texts()[-1]
    assert "had no effect because of an error" in texts()[-1]


def test_an_alert_on_what_depends_on_the_cause_joins_two_steps_away() -> None:
    tell(EARLIER, "vm/v1", parents=["host/h1"])
    tell(EARLIER, "host/h1", depends_on=[T12])
    blame()
    send(alert("v1", component="vm/v1"))
    assert "vm/v1 is contained in host/h1, which depends on tor/t12" in texts()[-1]


def test_an_alert_elsewhere_gets_a_ticket_of_its_own() -> None:
    rack("h1")
    rack("h2", switch="tor/other")
    blame()
    host("h2")
    assert len(tickets()) == 2


def test_a_finding_takes_in_alerts_that_have_tickets_already() -> None:
    rack("h1", "h2")
    host("h1")
    host("h2", group="Down")
    blame()
    cause = by_component(T12).incident
    assert (cause.alerts, cause.firing) == (2, 2)
    emptied = [one.incident for one in tickets("resolved")]
    assert [(one.alerts, one.confirmed_cause) for one in emptied] == [(0, None), (0, None)]
    assert "its alerts are symptoms of #3" in texts(1)[-1]


def test_of_a_shared_ticket_only_what_is_explained_moves() -> None:
    rack("h1")
    send(alert("h1", component="host/h1"), alert("h9", component="host/h9"))
    blame()
    assert (ticket(1).incident.state, ticket(1).incident.firing) == ("open", 1)
    assert by_component(T12).incident.firing == 1


def test_a_group_that_lost_most_of_its_alerts_tells_what_is_left() -> None:
    racked = [f"h{n}" for n in range(12)]
    rack(*racked)
    send(*(alert(name, component=f"host/{name}") for name in [*racked, "other"]))
    assert ticket(1).incident.title == "Slow: 10+ alerts on 10+ components of the kind host"
    blame()
    left = ticket(1).incident
    assert (left.alerts, left.title) == (1, "Slow: fewer than 10 alerts on host/other")


def test_a_ticket_that_somebody_works_on_is_only_told() -> None:
    rack("h1")
    host("h1")
    commands.comment(ticket(1).incident.id, "I am looking", ALICE)
    blame()
    blame(5)
    assert (ticket(1).incident.state, ticket(1).incident.firing) == ("open", 1)
    told = [text for text in texts(1) if "explains an alert" in text]
    assert len(told) == 1
    assert "kept as a separate incident: alice worked on this incident" in told[0]


def test_withdrawn_symptoms_go_back_to_the_tickets_that_they_had() -> None:
    rack("h1", "h2")
    host("h1")
    host("h2", group="Down")
    blame()
    run(5)
    assert [(one.incident.number, one.incident.state, one.incident.firing) for one in tickets()] == [
        (3, "open", 0),
        (2, "open", 1),
        (1, "open", 1),
    ]
    assert any("the finding of #3 was withdrawn" in text for text in texts(1))
    assert any("2 alerts left this incident: the finding of #3" in text for text in texts(3))


def test_a_withdrawn_symptom_whose_ticket_was_resolved_for_good_gets_another_one() -> None:
    rack("h1")
    host("h1")
    host("h9")
    host("h9", status="resolved")
    blame()
    run(5)
    assert [(one.incident.number, one.incident.firing) for one in tickets("open")] == [(3, 1), (2, 0)]


def test_a_symptom_that_rested_does_not_come_back_to_a_withdrawn_cause() -> None:
    rack("h1")
    blame()
    host("h1")
    host("h1", status="resolved")
    run(5)
    host("h1")
    assert ticket(2).incident.firing == 1


def test_an_alert_on_the_very_component_stays_when_the_blame_is_withdrawn() -> None:
    blame()
    send(alert("t12", component=T12))
    run(5)
    assert [one.incident.firing for one in tickets()] == [1]


def test_a_cause_resolved_as_no_fault_gives_its_symptoms_back() -> None:
    rack("h1")
    blame()
    host("h1")
    commands.resolve(ticket(1).incident.id, "none", "it was planned", ALICE)
    send()
    assert (ticket(2).incident.state, ticket(2).incident.firing) == ("open", 1)
    assert any("resolved as a false alarm" in text for text in texts(1))


def test_a_cause_that_is_narrowed_gives_back_what_it_explains_no_more() -> None:
    rack("h1")
    rack("h2", switch="tor/t13")
    run(0, suspect(T12, "tor/t13", sure=True))
    host("h1")
    host("h2")
    assert ticket(1).incident.firing == 2
    run(5, suspect(T12, sure=True))
    assert (ticket(1).incident.firing, ticket(2).incident.firing) == (1, 1)


def test_what_explains_symptoms_is_read_without_the_rest_of_their_ticket(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    rack("h1", "h2")
    for minutes, name in ((0, "h1"), (5, "h2")):
        blame(minutes)
        host(name)
    read: list[str] = []

    def reading(*args: Any) -> Any:
        found = read_versions(*args)
        read.extend(event.type for event in found)
        return found

    monkeypatch.setattr(correlate, "read_versions", reading)
    assert len(correlate.symptoms_of(ticket().incident.id)) == 2
    assert read == ["incident.symptoms_joined"] * 2


def test_a_rebuild_tells_the_same() -> None:
    rack("h1", "h2")
    host("h1")
    host("h2", group="Down")
    blame()
    run(5)
    blame(10)
    assert rebuild().differed == ()


def test_every_symptom_says_why_it_is_there() -> None:
    rack("h1", "h2")
    blame()
    host("h1")
    host("h2")
    found, _ = queries.members("1")
    assert {one.alert.component: queries.why_members("1", [one.id])[one.id] for one in found} == {
        "host/h1": "host/h1 is contained in tor/t12",
        "host/h2": "host/h2 is contained in tor/t12",
    }
