"""Removals, and what named, belonged to or waited for the removed thing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from incidents import commands
from incidents.api.editable import Catalog
from incidents.api.escalation import PoliciesView
from incidents.api.incident.views import ConflictError
from incidents.api.routing.services import ServicesView
from incidents.api.routing.views import RoutesView
from incidents.api.teams.members import TeamsView
from incidents.commands import CommandRefusedError
from incidents.domain.incident.commands import Report
from incidents.escalation.models import EscalationPolicy
from incidents.incident.models import IncidentRow
from incidents.notifications.contact_methods import remove_method
from incidents.notifications.models import ContactMethod
from incidents.oncall.models import OnCallSchedule
from incidents.queries import incident_events
from incidents.reports.models import ReportSchedule
from incidents.saved_views.models import SavedView
from incidents.suppression.models import MaintenanceWindow
from incidents.teams.models import Membership, Team
from incidents.timers import OF_INCIDENTS
from incidents.webhooks.models import Webhook
from ingest.queries import Context, Position, configured

ALICE = Context("user:alice")
CALL = [{"after": 0, "actions": [{"team": "lamps"}, {"channel": "lamp-room"}]}]
pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def lamps() -> Team:
    """A team that no incident of, with Bob in it; Alice is staff."""
    User.objects.create(username="alice", is_staff=True)
    team = Team.objects.create(slug="lamps", name="Lamps")
    Membership.objects.create(team=team, user=User.objects.create(username="bob"), role="admin")
    return team


def remove(catalog: type[Catalog], slug: str) -> None:
    view = catalog.acting_for(ALICE)
    view.perform_destroy(view.get_queryset().get(slug=slug))


def add(catalog: type[Catalog], **given: Any) -> None:
    view = catalog.acting_for(ALICE)
    serializer = view.get_serializer(data=given)
    serializer.is_valid(raise_exception=True)
    view.put(serializer)


def last(kind: str, key: str) -> tuple[Any, Any]:
    body = configured(kind, key)[-1].body
    return body["before"], body["after"]


def test_what_goes_with_a_team_is_recorded_each(lamps: Team) -> None:
    OnCallSchedule.objects.create(slug="lamp-nights", name="Nights", team=lamps, layers=[])
    SavedView.objects.create(team=lamps, name="Dark", slug="dark", query="tab=all")
    remove(TeamsView, "lamps")
    assert last("member", "lamps/bob") == ({"team": "lamps", "user": "bob", "role": "admin"}, None)
    before, after = last("saved_view", "dark")
    assert (before["team"], after) == ("lamps", None)
    before, after = last("schedule", "lamp-nights")
    assert (before["team"], after["team"]) == ("lamps", None)
    assert not Team.objects.filter(slug="lamps").exists()


def test_the_team_that_is_the_default_no_more_is_recorded_too(lamps: Team) -> None:
    view = TeamsView.acting_for(ALICE)
    former = Team.objects.get(is_default=True)
    serializer = view.get_serializer(lamps, data={"is_default": True}, partial=True)
    serializer.is_valid(raise_exception=True)
    view.put(serializer)
    before, after = last("team", former.slug)
    assert (before["is_default"], after["is_default"]) == (True, False)


def test_a_team_that_anything_names_stays(lamps: Team) -> None:
    EscalationPolicy.objects.create(slug="nights", name="Nights", steps=CALL)
    Webhook.objects.create(
        name="room", url="https://x", teams=["lamps"], position=str(Position.START), secret=b""
    )
    ReportSchedule.objects.create(name="light", title="Light", cadence="daily", team=lamps.slug)
    with pytest.raises(ConflictError) as refused:
        remove(TeamsView, "lamps")
    named = "the report light, the webhook room, the escalation policy Nights"
    assert str(refused.value.detail) == f"Lamps is used by {named}; change that first."


def test_a_channel_and_a_policy_that_are_named_stay(client: Client) -> None:
    channel = ContactMethod.objects.create(name="lamp-room", kind="webhook", address="https://x")
    add(PoliciesView, slug="nights", name="Nights", steps=CALL)
    add(RoutesView, name="lit", pattern="lamp/*", team="lamps", policy="nights")
    with pytest.raises(CommandRefusedError, match="lamp-room is used by the escalation policy Nights"):
        remove_method(channel, ALICE)
    with pytest.raises(ConflictError, match="Nights is used by the route lit"):
        remove(PoliciesView, "nights")
    client.force_login(User.objects.get(username="alice"))
    page = client.post("/settings/policies/nights/remove", follow=True).content.decode()
    assert "Nights is used by the route lit; change that first." in page


def test_a_service_that_is_worked_on_stays() -> None:
    add(ServicesView, slug="light", name="Light", patterns=["lamp/*"])
    now = timezone.now()
    MaintenanceWindow.objects.create(
        slug="bulbs", services=["light"], starts_at=now, ends_at=now + timedelta(hours=1)
    )
    with pytest.raises(ConflictError, match="Light is used by the maintenance window bulbs"):
        remove(ServicesView, "light")


def handed_over() -> str:
    """An incident that the lamps gave to somebody who has not answered."""
    Route = RoutesView
    add(Route, name="lit", pattern="lamp/*", team="lamps")
    id_ = commands.open_incident(Report("Dark", component="lamp/1"), ALICE).incident.id
    commands.hand_over(id_, "network", "a cable", ALICE)
    Route.queryset.filter(name="lit").delete()
    return id_


def test_a_team_that_a_ticket_may_still_be_bounced_back_to_stays() -> None:
    id_ = handed_over()
    with pytest.raises(ConflictError, match="may still be returned to it"):
        remove(TeamsView, "lamps")
    commands.accept(id_, ALICE)
    remove(TeamsView, "lamps")


def test_no_ticket_goes_back_to_a_team_that_is_gone() -> None:
    id_ = handed_over()
    Team.objects.filter(slug="lamps").delete()
    with pytest.raises(CommandRefusedError, match=r"lamps, which #\d+ came from, was removed"):
        commands.bounce(id_, "not ours", ALICE)
    with pytest.raises(CommandRefusedError, match="was removed"):
        commands.undo(id_, None, ALICE)


def test_a_ticket_that_opens_again_under_a_removed_team_goes_to_the_default_with_the_reason() -> None:
    id_ = handed_over()
    commands.undo(id_, None, ALICE)
    other = commands.open_incident(Report("Dark", component="tor/1"), ALICE).incident.id
    commands.merge(id_, other, "", ALICE)
    remove(TeamsView, "lamps")
    commands.split(id_, "", ALICE)
    assert [OF_INCIDENTS["orphaned incidents"](timezone.now()) for _ in range(2)] == [1, 0]
    default = Team.objects.get(is_default=True).slug
    assert IncidentRow.objects.get(pk=id_).team == default
    why = incident_events(id_)[-1].body["reason"]
    assert why == f"team lamps was removed; {default} is the default team"
