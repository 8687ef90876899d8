"""Roles hold wherever a command comes from: every verb with every role, over the API and in the console."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from incidents import commands
from incidents.api.urls import ACTIONS
from incidents.commands import Report
from incidents.domain.permissions import ANYWHERE, AT_ITS_TEAM, ForbiddenError
from incidents.incident.models import IncidentRow
from incidents.oncall.models import OnCallSchedule, Override
from incidents.teams.models import Membership, Route, Silence, Team
from ingest.api import keys
from ingest.queries import Context, configured

pytestmark = pytest.mark.django_db

SYSTEM = Context("system:test")
WHO = ("in no team", "viewer", "responder", "responder elsewhere", "manager", "staff")
OF_THE_TEAM = ("responder", "manager", "staff")
BODIES: dict[str, dict[str, Any]] = {
    "assign": {"owner": "bob"},
    "hand_over": {"team": "network", "reason": "theirs"},
    "bounce": {"reason": "not ours"},
    "snooze": {},
    "merge": {"into": "{other}"},
    "split_off": {"alerts": "none of its own"},
    "set_severity": {"severity": "info"},
    "set_title": {"title": "Fans"},
    "comment": {"text": "hello"},
    "escalate": {"reason": "nobody answers"},
    "link": {"href": "https://example.com/"},
    "resolve": {"confirmed_cause": "none"},
}


def somebody(who: str, name: str = "charlie") -> Client:
    user = get_user_model().objects.create(username=name, is_staff=who == "staff")
    if who in ("viewer", "responder", "manager"):
        Membership.objects.create(team=Team.objects.get(slug="storage"), user=user, role=who)
    if who == "responder elsewhere":
        Membership.objects.create(team=Team.objects.get(slug="network"), user=user, role="responder")
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def ticket() -> str:
    """An incident of the storage team, in a house where roles hold."""
    bob = get_user_model().objects.create(username="bob")
    Membership.objects.create(team=Team.objects.get(slug="storage"), user=bob, role="responder")
    return commands.open_incident(
        Report("Disks are slow", component="storage_cluster/s1"), SYSTEM
    ).incident.id


def events() -> int:
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM log_event")
        return int(cursor.fetchone()[0])


def test_every_command_of_the_api_has_a_rule() -> None:
    others = {
        "analyze",
        "answer_question",
        "answer_remediation",
        "request_probe",
        "attach_evidence",
        "hand_to_cluster",
        "open",
        "override",
        "publish_status",
        "record_outcome",
        "silence",
    }
    assert {*ACTIONS, *others} == ANYWHERE | AT_ITS_TEAM


@pytest.mark.parametrize("who", WHO)
@pytest.mark.parametrize("verb", sorted(ACTIONS))
def test_a_verb_is_open_to_whom_it_should_be_and_denied_without_a_trace_to_others(
    ticket: str, verb: str, who: str
) -> None:
    other = commands.open_incident(Report("Other", component="storage_cluster/s2"), SYSTEM).incident.id
    client, before = somebody(who), events()
    body = {name: value.format(other=other) for name, value in BODIES.get(verb, {}).items()}
    answer = client.post(f"/api/v1/incidents/{ticket}/{verb}", body, content_type="application/json")
    allowed = who in OF_THE_TEAM or (who == "responder elsewhere" and verb in ANYWHERE)
    if allowed:
        assert answer.status_code in (200, 400, 409)
    else:
        assert answer.status_code == 403
        assert "requires the role responder" in answer.json()["detail"]
        assert events() == before


@pytest.mark.parametrize("who", WHO)
def test_reports_are_for_responders_of_any_team(ticket: str, who: str) -> None:
    del ticket
    answer = somebody(who).post("/api/v1/incidents", {"title": "Fans"}, content_type="application/json")
    assert answer.status_code == (403 if who in ("in no team", "viewer") else 201)


@pytest.mark.parametrize("who", WHO)
def test_evidence_is_for_responders_of_the_team(ticket: str, who: str) -> None:
    body = {"evidence": [{"kind": "text", "title": "Log", "text": "x"}]}
    answer = somebody(who).post(f"/api/v1/incidents/{ticket}/evidence", body, content_type="application/json")
    assert answer.status_code == (200 if who in OF_THE_TEAM else 403)


@pytest.mark.parametrize("who", WHO)
def test_everybody_reads(ticket: str, who: str) -> None:
    assert somebody(who).get(f"/api/v1/incidents/{ticket}").status_code == 200


@pytest.mark.parametrize("who", WHO)
def test_the_console_denies_the_same_and_says_why(ticket: str, who: str) -> None:
    client, number = somebody(who), IncidentRow.objects.get(pk=ticket).number
    answer = client.post(f"/incidents/{number}/acknowledge", {"next": f"/incidents/{number}"})
    if who in OF_THE_TEAM:
        assert answer.status_code == 302
    else:
        assert answer.status_code == 403
        assert "bob can" in answer.content.decode()


@pytest.mark.parametrize("who", WHO)
def test_silences_are_for_responders_of_any_team(ticket: str, who: str) -> None:
    del ticket
    client = somebody(who)
    ends = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
    body = {"matchers": 'disk="d1"', "ends_at": ends, "comment": "being replaced"}
    answer = client.post("/api/v1/silences", body, content_type="application/json")
    form = {"matchers": 'disk="d2"', "span": "1 h", "comment": "being replaced"}
    allowed = who not in ("in no team", "viewer")
    assert answer.status_code == (201 if allowed else 403)
    assert client.post("/silences", form).status_code == (302 if allowed else 403)
    assert Silence.objects.count() == (2 if allowed else 0)


def silence(client: Client, days: float, matchers: str = 'disk=~"d.*"') -> Any:
    ends = (datetime.now(UTC) + timedelta(days=days)).isoformat()
    body = {"matchers": matchers, "ends_at": ends, "comment": "being replaced"}
    return client.post("/api/v1/silences", body, content_type="application/json")


@pytest.mark.parametrize("who", WHO[2:])
def test_a_silence_of_a_year_is_for_managers_and_staff(ticket: str, who: str) -> None:
    del ticket
    client = somebody(who)
    assert silence(client, 365).status_code == (201 if who in ("manager", "staff") else 403)
    assert silence(client, 30).status_code == 201


def rota(client: Client, team: str | None) -> Any:
    """Charlie puts himself on a rota of Bob's."""
    bob = get_user_model().objects.get(username="bob")
    layers = [
        {
            "participants": [[bob.username]],
            "starts_on": "2026-01-01",
            "every": 1,
            "unit": "weeks",
            "at": "09:00",
        }
    ]
    where = None if team is None else Team.objects.get(slug=team)
    OnCallSchedule.objects.create(slug="disks", name="Disks", team=where, layers=layers)
    ends = (datetime.now(UTC) + timedelta(days=20)).isoformat()
    body = {"person": "charlie", "ends_at": ends, "reason": "I can"}
    return client.post("/api/v1/schedules/disks/overrides", body, content_type="application/json")


@pytest.mark.parametrize("who", WHO)
def test_who_is_on_call_is_changed_by_responders_of_the_rota_s_team_and_staff(ticket: str, who: str) -> None:
    del ticket
    client = somebody(who)
    assert rota(client, "storage").status_code == (201 if who in OF_THE_TEAM else 403)
    assert Override.objects.count() == (1 if who in OF_THE_TEAM else 0)


def test_the_override_of_another_team_is_not_ended(ticket: str) -> None:
    del ticket
    made = rota(somebody("staff"), "storage").json()["id"]
    client = somebody("responder elsewhere", "alice")
    assert client.delete(f"/api/v1/schedules/disks/overrides/{made}").status_code == 403
    assert Override.objects.get().ends_at > datetime.now(UTC) + timedelta(days=1)


def test_a_rota_of_no_team_is_for_responders_of_any(ticket: str) -> None:
    del ticket
    assert rota(somebody("responder elsewhere"), None).status_code == 201


def test_where_nobody_is_in_a_team_everybody_may_work_on_tickets() -> None:
    id_ = commands.open_incident(Report("Disks are slow"), SYSTEM).incident.id
    answer = somebody("in no team").post(
        f"/api/v1/incidents/{id_}/acknowledge", {}, content_type="application/json"
    )
    assert answer.status_code == 200


def test_a_key_has_its_scopes_and_no_role(ticket: str) -> None:
    header = f"Bearer {keys.create('script', ['incidents:write'])}"
    client = Client(headers={"Authorization": header})
    answer = client.post(f"/api/v1/incidents/{ticket}/acknowledge", {}, content_type="application/json")
    assert answer.status_code == 200


def test_whoever_handed_a_ticket_over_may_take_that_back(ticket: str) -> None:
    bob = Context("user:bob")
    commands.hand_over(ticket, "network", "theirs", bob)
    with pytest.raises(ForbiddenError):
        commands.acknowledge(ticket, bob)
    assert commands.undo(ticket, None, bob).incident.team == "storage"


def test_somebody_who_was_switched_off_may_do_nothing(ticket: str) -> None:
    User.objects.filter(username="bob").update(is_active=False)
    Membership.objects.all().update(role="admin")
    with pytest.raises(ForbiddenError):
        commands.acknowledge(ticket, Context("user:bob"))


@pytest.mark.parametrize("verb", sorted(set(ACTIONS) - ANYWHERE - {"split"}))
def test_who_may_not_is_refused_whatever_the_body_says(ticket: str, verb: str) -> None:
    path = f"/api/v1/incidents/{ticket}/{verb}"
    answer = somebody("responder elsewhere").post(path, {"nonsense": 1}, content_type="application/json")
    assert answer.status_code == 403


def test_a_viewer_is_refused_before_a_report_is_read(ticket: str) -> None:
    del ticket
    answer = somebody("viewer").post("/api/v1/incidents", {"nonsense": 1}, content_type="application/json")
    assert answer.status_code == 403


# Configuration of a team
# ----------------------------------------------------------------------------------------------------------
ABOVE = {"name": "rooms", "order": 900, "pattern": "*", "team": "storage"}
"""By which staff give the team what its own rules divide."""
ROUTE = {"name": "lamps", "parent": "rooms", "pattern": "lamp/*", "team": "storage"}


def above() -> None:
    staff = somebody("staff", "dana")
    assert staff.post("/api/v1/routes", ABOVE, content_type="application/json").status_code == 201


@pytest.mark.parametrize("who", WHO)
def test_routes_of_a_team_are_for_its_managers(ticket: str, who: str) -> None:
    del ticket
    above()
    answer = somebody(who).post("/api/v1/routes", ROUTE, content_type="application/json")
    assert answer.status_code == (201 if who in ("manager", "staff") else 403)


def test_a_manager_leaves_routes_of_other_teams_alone(ticket: str) -> None:
    del ticket
    staff, manager = somebody("staff", "alice"), somebody("manager")
    staff.post(
        "/api/v1/routes", {**ABOVE, "name": "lamps", "team": "network"}, content_type="application/json"
    )
    for body in ({"team": "storage"}, {"pattern": "fan/*"}):
        answer = manager.patch("/api/v1/routes/lamps", body, content_type="application/json")
        assert answer.status_code == 403
    assert manager.delete("/api/v1/routes/lamps").status_code == 403
    assert len(configured("route", "lamps")) == 1


def test_a_manager_gives_no_route_away(ticket: str) -> None:
    del ticket
    above()
    manager = somebody("manager")
    manager.post("/api/v1/routes", ROUTE, content_type="application/json")
    answer = manager.patch("/api/v1/routes/lamps", {"team": "network"}, content_type="application/json")
    assert answer.status_code == 403


TAKES_ALL = {"name": "mine", "pattern": "", "order": 0, "team": "storage"}


@pytest.mark.parametrize(
    "rule",
    [
        TAKES_ALL,
        {**TAKES_ALL, "pattern": "tor/*"},
        {**TAKES_ALL, "parent": "switches"},
        {**TAKES_ALL, "parent": "nothing"},
    ],
)
def test_a_rule_of_a_manager_takes_no_incidents_of_other_teams(ticket: str, rule: dict[str, Any]) -> None:
    del ticket
    network, rooms = Team.objects.get(slug="network"), Team.objects.get(slug="storage")
    Route.objects.create(name="switches", order=0, pattern="tor/*", team=network)
    Route.objects.create(name="nothing", order=5, pattern="lamp/*")
    Route.objects.create(name="rooms", order=6, pattern="room/*", team=rooms)
    manager = somebody("manager")
    answer = manager.post("/api/v1/routes", rule, content_type="application/json")
    assert answer.status_code == 403
    assert "staff" in answer.json()["detail"]
    opened = commands.open_incident(Report("Down", component="tor/t1"), SYSTEM).incident
    assert opened.team == "network"


@pytest.mark.parametrize("change", [{"pattern": "*"}, {"order": 0}, {"when": {"severities": ["info"]}}])
def test_a_rule_that_staff_gave_a_team_is_changed_by_staff(ticket: str, change: dict[str, Any]) -> None:
    del ticket
    above()
    manager = somebody("manager")
    assert manager.patch("/api/v1/routes/rooms", change, content_type="application/json").status_code == 403
    assert manager.delete("/api/v1/routes/rooms").status_code == 403


def test_a_rule_of_a_manager_is_not_moved_to_the_first_level(ticket: str) -> None:
    del ticket
    above()
    manager = somebody("manager")
    assert manager.post("/api/v1/routes", ROUTE, content_type="application/json").status_code == 201
    answer = manager.patch("/api/v1/routes/lamps", {"parent": None}, content_type="application/json")
    assert answer.status_code == 403


@pytest.mark.parametrize(
    ("patterns", "status"), [(["disk/*"], 201), (["disk/a*"], 201), (["tor/*"], 403), (["disk/a", "*"], 403)]
)
def test_a_service_of_a_manager_has_components_of_the_team_alone(
    ticket: str, patterns: list[str], status: int
) -> None:
    del ticket
    Route.objects.create(name="disks", order=7, pattern="disk/*", team=Team.objects.get(slug="storage"))
    body = {"slug": "blocks", "name": "Blocks", "team": "storage", "patterns": patterns}
    manager = somebody("manager")
    assert manager.post("/api/v1/services", body, content_type="application/json").status_code == status
    somebody("staff", "dana").post(
        "/api/v1/services",
        {**body, "slug": "more", "name": "More", "patterns": []},
        content_type="application/json",
    )
    answer = manager.patch("/api/v1/services/more", {"patterns": patterns}, content_type="application/json")
    assert answer.status_code == (200 if status == 201 else 403)


def test_a_responder_takes_no_incident_of_another_team(ticket: str) -> None:
    other = somebody("responder elsewhere")
    path = f"/api/v1/incidents/{ticket}"
    taken = other.post(
        f"{path}/hand_over", {"team": "network", "reason": "ours"}, content_type="application/json"
    )
    assert taken.status_code == 403
    done = other.post(f"{path}/resolve", {"confirmed_cause": "none"}, content_type="application/json")
    assert done.status_code == 403
    assert IncidentRow.objects.get(pk=ticket).team == "storage"


@pytest.mark.parametrize("who", WHO)
def test_members_are_put_in_by_managers_and_staff(ticket: str, who: str) -> None:
    del ticket
    get_user_model().objects.create(username="dave")
    answer = somebody(who).put(
        "/api/v1/teams/storage/members/dave", {"role": "viewer"}, content_type="application/json"
    )
    assert answer.status_code == (200 if who in ("manager", "staff") else 403)
    assert Membership.objects.filter(user__username="dave").exists() == (who in ("manager", "staff"))


def test_a_manager_makes_nobody_admin_and_removes_no_admin(ticket: str) -> None:
    del ticket
    manager = somebody("manager")
    path = "/api/v1/teams/storage/members/bob"
    assert manager.put(path, {"role": "admin"}, content_type="application/json").status_code == 403
    Membership.objects.filter(user__username="bob").update(role="admin")
    assert manager.delete(path).status_code == 403


def test_a_manager_of_one_team_puts_nobody_into_another(ticket: str) -> None:
    del ticket
    path = "/api/v1/teams/network/members/bob"
    assert (
        somebody("manager").put(path, {"role": "viewer"}, content_type="application/json").status_code == 403
    )


@pytest.mark.parametrize(("scope", "status"), [("incidents:write", 403), ("admin", 200)])
def test_a_key_needs_admin_to_put_somebody_into_a_team(ticket: str, scope: str, status: int) -> None:
    del ticket
    client = Client(headers={"Authorization": f"Bearer {keys.create('script', [scope])}"})
    answer = client.put(
        "/api/v1/teams/storage/members/bob", {"role": "viewer"}, content_type="application/json"
    )
    assert answer.status_code == status
