"""Alerts of a team are silenced by its responders and by staff."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model

from incidents.follower import follower
from incidents.incident.models import IncidentRow
from incidents.teams.models import Membership, Silence, Team
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.integrations.normalized import Alert, Parsed
from tests.following import follow_to_the_end
from tests.integration.incidents.people.test_roles import silence, somebody

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def firing() -> IncidentRow:
    """An incident of storage, with an alert that fires."""
    bob = get_user_model().objects.create(username="bob")
    Membership.objects.create(team=Team.objects.get(slug="storage"), user=bob, role="responder")
    labels = {"disk": "d7", "rack": "r1"}
    alert = Alert("d7", "firing", "d7 is slow", component="storage_cluster/s1", labels=labels)
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    return IncidentRow.objects.get(team="storage")


@pytest.mark.parametrize("who", ["responder", "staff"])
def test_responders_of_the_team_and_staff_silence_what_fires_there(firing: IncidentRow, who: str) -> None:
    del firing
    assert silence(somebody(who), 0.1).status_code == 201


def test_a_responder_of_another_team_is_told_which_incident_it_would_silence(firing: IncidentRow) -> None:
    client = somebody("responder elsewhere")
    answer = silence(client, 0.1)
    assert answer.status_code == 403
    assert f"It would silence #{firing.number} of storage" in answer.content.decode()
    assert Silence.objects.count() == 0
    assert silence(client, 0.1, 'disk=~"d.*", rack!="r1"').status_code == 201


@pytest.mark.parametrize(
    "matchers", ['component=~"storage_cluster/.*"', 'dedup_key="d7"', 'integration="prometheus"']
)
def test_what_is_no_label_is_held_against_other_teams_too(firing: IncidentRow, matchers: str) -> None:
    answer = silence(somebody("responder elsewhere"), 0.1, matchers)
    assert answer.status_code == 403
    assert f"It would silence #{firing.number} of storage" in answer.content.decode()


def test_what_fires_no_more_is_in_nobody_s_way(firing: IncidentRow) -> None:
    alert = Alert("d7", "resolved", "d7 is fine", component="storage_cluster/s1", labels={"disk": "d7"})
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    firing.refresh_from_db()
    assert silence(somebody("responder elsewhere"), 0.1).status_code == 201
