"""Roles and permissions over the API: configuration is for staff and keys with `admin`, incidents are for everybody
who is signed in and for keys with their scopes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from analyzers.queries import Schedule
from incidents import commands
from incidents.commands import Report
from incidents.oncall.models import OnCallSchedule as Rota
from incidents.oncall.models import Override
from incidents.teams.models import Membership, Route, Service, Team
from ingest.api import keys
from ingest.queries import Context
from tests.integration.incidents.escalation.cases import policy

pytestmark = pytest.mark.django_db

WHO = ("nobody", "bob", "alice", "incidents:read", "incidents:write", "admin")
"""Bob is a responder, Alice is staff; the rest are keys with that scope."""
CONFIGURES = (
    ("post", "teams"),
    ("patch", "teams/storage"),
    ("delete", "teams/storage"),
    ("post", "routes"),
    ("patch", "routes/{route}"),
    ("delete", "routes/{route}"),
    ("post", "services"),
    ("patch", "services/{service}"),
    ("delete", "services/{service}"),
    ("post", "schedules"),
    ("patch", "schedules/on-call"),
    ("delete", "schedules/on-call"),
    ("post", "calendars"),
    ("post", "maintenance"),
    ("patch", "maintenance/row-3"),
    ("delete", "maintenance/row-3"),
    ("post", "inhibitions"),
    ("patch", "inhibitions/cluster-down"),
    ("delete", "inhibitions/cluster-down"),
    ("post", "analysis_schedules"),
    ("patch", "analysis_schedules/{schedule}"),
    ("delete", "analysis_schedules/{schedule}"),
    ("post", "report_schedules"),
    ("post", "escalation_policies"),
    ("patch", "escalation_policies/storage"),
    ("delete", "escalation_policies/storage"),
    ("post", "integrations"),
    ("get", "integrations"),
    ("post", "channels"),
    ("patch", "channels/nowhere"),
    ("delete", "channels/nowhere"),
    ("get", "users/charlie/contact_methods"),
    ("post", "users/charlie/contact_methods"),
    ("put", "users/charlie/notification_rules"),
    ("post", "webhooks"),
    ("get", "webhooks"),
)
RESPONDS: tuple[tuple[str, str, dict[str, str]], ...] = (
    ("post", "incidents", {"title": "Fans are loud"}),
    ("post", "incidents/{incident}/acknowledge", {}),
    ("post", "incidents/{incident}/resolve", {"confirmed_cause": "none"}),
    ("post", "incidents/{incident}/escalate", {"reason": "nobody answers"}),
    ("post", "incidents/bulk", {"action": "acknowledge", "search": "title"}),
    (
        "post",
        "silences",
        {
            "matchers": 'disk="d1"',
            "ends_at": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
            "comment": "being replaced",
        },
    ),
    (
        "post",
        "schedules/on-call/overrides",
        {
            "person": "charlie",
            "ends_at": (datetime.now(UTC) + timedelta(hours=1)).isoformat(),
            "reason": "dentist",
        },
    ),
)
READS = (
    *(
        "incidents",
        "saved_views",
        "channels",
        "silences",
        "maintenance",
        "inhibitions",
        "teams",
        "routes",
        "services",
        "escalation_policies",
        "analysis_schedules",
        "report_schedules",
        "runs",
        "grid",
        "backtests",
    ),
    *("schedules", "schedules/on-call/shifts", "schedules/on-call.ics", "calendars", "on_call"),
)


@pytest.fixture(autouse=True)
def configured() -> None:
    get_user_model().objects.create(username="charlie")
    layer = {"name": "primary", "people": ["charlie"], "start": "2026-01-05T09:00", "turn": "1w"}
    Service.objects.create(slug="block", name="Block storage")
    Rota.objects.create(slug="on-call", name="On call", layers=[layer])


def caller(who: str) -> Client:
    if who in keys.SCOPES:
        return Client(headers={"Authorization": f"Bearer {keys.create('script', [who])}"})
    client = Client()
    if who != "nobody":
        client.force_login(get_user_model().objects.create(username=who, is_staff=who == "alice"))
    return client


def status(who: str, method: str, path: str, body: object = None, incident: str = "") -> int:
    named = path.format(
        route=Route.objects.values_list("name", flat=True)[0],
        service="block",
        schedule=Schedule.objects.values_list("name", flat=True)[0],
        incident=incident,
    )
    call = getattr(caller(who), method)
    given = () if method == "get" else ({} if body is None else body,)
    return int(call(f"/api/v1/{named}", *given, content_type="application/json").status_code)


def configuration() -> list[object]:
    return [list(table.objects.values_list()) for table in (Team, Route, Service, Rota, Schedule)]


@pytest.mark.parametrize(("method", "path"), CONFIGURES)
@pytest.mark.parametrize("who", [one for one in WHO if one not in ("alice", "admin")])
def test_configuration_is_closed_to_everybody_but_staff_and_admin_keys(
    who: str, method: str, path: str
) -> None:
    before = configuration()
    assert status(who, method, path) == (401 if who == "nobody" else 403)
    assert configuration() == before


@pytest.mark.parametrize(("method", "path"), CONFIGURES)
@pytest.mark.parametrize("who", ["alice", "admin"])
def test_configuration_is_open_to_staff_and_admin_keys(who: str, method: str, path: str) -> None:
    assert status(who, method, path) not in (401, 403)


@pytest.mark.parametrize(("method", "path", "body"), RESPONDS)
@pytest.mark.parametrize("who", WHO)
def test_tickets_and_silences_are_for_people_and_keys_that_write(
    who: str, method: str, path: str, body: dict[str, object]
) -> None:
    opened = commands.open_incident(Report("Disks are slow"), Context("user:alice")).incident
    policy(team=opened.team)
    incident = opened.id
    told = status(who, method, path, body, incident)
    refused = {"nobody": 401, "incidents:read": 403}
    assert told == refused[who] if who in refused else told < 300


@pytest.mark.parametrize("path", READS)
@pytest.mark.parametrize("who", WHO)
def test_everybody_who_is_let_in_may_read_except_keys_that_only_write(who: str, path: str) -> None:
    refused = {"nobody": 401, "incidents:write": 403}
    assert status(who, "get", path) == refused.get(who, 200)


def test_somebody_who_is_not_staff_is_told_what_is_needed() -> None:
    answer = caller("bob").delete("/api/v1/teams/storage")
    assert answer.json()["detail"] == "This needs a key with the scope admin, or a person who is staff."


def test_who_may_not_change_who_is_on_call_is_told_who_could() -> None:
    for name, role in (("bob", "viewer"), ("alice", "responder")):
        user = get_user_model().objects.create(username=name)
        Membership.objects.create(user=user, team=Team.objects.get(slug="storage"), role=role)
    client = Client()
    client.force_login(get_user_model().objects.get(username="bob"))
    answer = client.post(
        "/on-call/on-call/take-over", {"person": "charlie", "span": "1 h", "reason": "dentist"}
    )
    assert answer.status_code == 403
    assert "requires the role responder of storage" in answer.content.decode()
    assert not Override.objects.exists()
