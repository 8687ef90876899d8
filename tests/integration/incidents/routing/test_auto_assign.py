"""Incidents that go on to the team that is suggested for them, learned from incidents that were really resolved."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.incident.state import Incident
from incidents.escalation.models import EscalationRow
from incidents.incident.models import IncidentRow, PendingAutoAssign
from incidents.routing.auto_assign import auto_assign_due
from incidents.similarity.team_prediction import CALIBRATES, LEARNS
from incidents.teams.models import Route
from ingest.queries import Context, read_stream
from tests.integration.incidents.test_similarity import asked

ALICE = Context("user:alice")
pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture(autouse=True)
def _racks(log_database: str) -> None:  # noqa: ARG001
    Route.objects.create(name="racks", order=0, pattern="rack/*", follow_suggestion=True)


def opened(title: str, component: str) -> str:
    return commands.open_incident(Report(title, component), ALICE).incident.id


def state(id_: str) -> Incident:
    return queries.get(id_).incident


def test_a_ticket_goes_once_to_the_suggested_team_where_its_route_says_so() -> None:
    # Switches network resolved, disks storage did.
    for number in range(LEARNS + CALIBRATES + 20):
        title, component = ("Switch fails", "tor/t1") if number % 2 else ("Disks fail", "storage_cluster/s1")
        commands.resolve(opened(title, component), component, "", ALICE)
    Route.objects.create(
        name="quiet",
        parent=Route.objects.get(name="racks"),
        order=1,
        pattern="rack/q*",
        follow_suggestion=False,
    )
    goes, said_no = opened("Switch fails", "rack/r1"), opened("Switch fails", "rack/q1")
    nobody_says, never_seen = opened("Switch fails", "host/h1"), opened("Unheard of", "rack/r2")
    touched = opened("Switch fails", "rack/r3")
    commands.comment(touched, "I look at it", ALICE)
    assert PendingAutoAssign.objects.count() == 3
    assert [auto_assign_due(datetime.now(UTC)) for _ in range(2)] == [3, 0]
    assert [state(id_).hops for id_ in (said_no, nobody_says, never_seen, touched)] == [0, 0, 0, 0]
    told = asked(state(nobody_says).number).json()["suggested_team"]
    assert told["team"] == "network"
    assert told["probability"] > 0.7
    assert told["record"]["judged"] >= told["record"]["suggested"] >= told["record"]["right"] > 0
    there = state(goes)
    assert (there.team, there.hops, there.handed_from) == ("network", 1, "on-call")
    event = read_stream(f"incident/{goes}")[-1]
    assert (event.type, event.actor) == ("incident.reassigned", "system:incidents")
    assert event.body["reason"].startswith("predicted with ")
    assert "the route `racks` has auto-assign" in event.body["reason"]
    # The policy of the team that has it now calls from here on.
    assert EscalationRow.objects.get(incident__pk=goes).state["why"] == "handed over to network"
    commands.bounce(goes, "not ours", ALICE)
    assert auto_assign_due(datetime.now(UTC)) == 0
    assert (state(goes).team, state(goes).rejections) == ("on-call", 1)


def test_a_ticket_that_cannot_be_read_keeps_no_other_waiting() -> None:
    broken, _ = opened("Switch fails", "rack/r1"), opened("Switch fails", "rack/r2")
    IncidentRow.objects.filter(pk=broken).update(opinions=7)
    with pytest.raises(AttributeError):
        auto_assign_due(datetime.now(UTC))
    assert str(PendingAutoAssign.objects.get().pk) == broken
    assert auto_assign_due(datetime.now(UTC)) == 0  # it is passed over for a while
