"""People over the API and in the console: made, switched off, put into teams; each change in the audit."""

from __future__ import annotations

import json
import re
from html import unescape
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.test import Client

from incidents.audit.follower import FOLLOWER
from incidents.audit.models import Change
from incidents.audit.queries import NEWEST, AuditQuery, changes
from incidents.teams.models import Membership, Team
from ingest.api import keys
from ingest.api.pagination import page_of_rows
from ingest.commands import record_configuration
from ingest.queries import Context, configured
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")
PASSWORD = "correct horse battery staple"


@pytest.fixture
def alice() -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def call(client: Client, method: str, path: str, body: Any = None) -> Any:
    return getattr(client, method)(f"/api/v1/{path}", body, content_type="application/json")


def test_somebody_is_made_who_can_sign_in_and_no_answer_has_the_password(alice: Client) -> None:
    answer = call(alice, "post", "users", {"username": "bob", "password": PASSWORD})
    assert answer.status_code == 201
    assert Client().login(username="bob", password=PASSWORD)
    shown = [answer, alice.get("/api/v1/users"), alice.get("/api/v1/users/bob")]
    assert not [one for one in shown if "password" in one.json() or PASSWORD in one.content.decode()]
    assert PASSWORD not in json.dumps([event.body for event in configured("user", "bob")])


def test_somebody_without_a_password_cannot_sign_in_with_one(alice: Client) -> None:
    call(alice, "post", "users", {"username": "bob"})
    assert not User.objects.get(username="bob").has_usable_password()
    assert configured("user", "bob")[0].body["after"]["password"] is None


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"username": "bob", "password": "12345"}, "password"),
        ({"username": "", "password": PASSWORD}, "username"),
        ({"username": "a b", "password": PASSWORD}, "username"),
        ({"username": "alice", "password": PASSWORD}, "username"),
        ({"username": "bob", "email": "nonsense"}, "email"),
        ({"username": "bob", "is_superuser": True}, "is_superuser"),
        ({"username": "bob\x00"}, "username"),
    ],
)
def test_what_makes_no_sense_is_refused_by_field(alice: Client, body: dict[str, Any], field: str) -> None:
    answer = call(alice, "post", "users", body)
    assert answer.status_code == 400
    assert field in answer.json()["errors"]
    assert User.objects.count() == 1


def test_somebody_who_is_switched_off_is_out_at_once(alice: Client) -> None:
    call(alice, "post", "users", {"username": "bob", "password": PASSWORD})
    bob = Client()
    bob.login(username="bob", password=PASSWORD)
    assert bob.get("/api/v1/incidents").status_code == 200
    call(alice, "patch", "users/bob", {"is_active": False})
    assert bob.get("/api/v1/incidents").status_code in (401, 403)
    assert not Client().login(username="bob", password=PASSWORD)


def test_the_last_who_is_staff_stays_staff(alice: Client) -> None:
    for body in ({"is_active": False}, {"is_staff": False}):
        assert call(alice, "patch", "users/alice", body).status_code == 409
    call(alice, "post", "users", {"username": "bob", "is_staff": True})
    assert call(alice, "patch", "users/alice", {"is_staff": False}).status_code == 200


@pytest.mark.parametrize("method", ["get", "post"])
def test_people_are_for_staff_and_admin_keys(method: str) -> None:
    bob = Client()
    bob.force_login(get_user_model().objects.create(username="bob"))
    key = Client(headers={"Authorization": f"Bearer {keys.create('script', ['incidents:write'])}"})
    for client, status in ((Client(), 401), (bob, 403), (key, 403)):
        assert call(client, method, "users").status_code == status


def test_a_place_in_a_team_is_made_changed_and_taken_away_in_the_record(alice: Client) -> None:
    call(alice, "post", "users", {"username": "bob"})
    path = "teams/storage/members/bob"
    assert call(alice, "put", path, {"role": "viewer"}).json() == {"user": "bob", "role": "viewer"}
    call(alice, "put", path, {"role": "manager"})
    assert call(alice, "get", "teams/storage/members").json() == {
        "results": [{"user": "bob", "role": "manager"}]
    }
    assert call(alice, "delete", path).status_code == 204
    roles = [(e.body["before"] or {}).get("role") for e in configured("member", "storage/bob")]
    assert roles == [None, "viewer", "manager"]


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("teams/storage/members/alice", {"role": "king"}, 400),
        ("teams/storage/members/alice", {}, 400),
        ("teams/storage/members/alice", {"role": ["viewer"]}, 400),
        ("teams/nowhere/members/alice", {"role": "viewer"}, 404),
        ("teams/storage/members/nobody", {"role": "viewer"}, 404),
    ],
)
def test_a_place_that_cannot_be_is_refused(
    alice: Client, path: str, body: dict[str, Any], status: int
) -> None:
    assert call(alice, "put", path, body).status_code == status
    assert not Membership.objects.exists()


# The console
# ----------------------------------------------------------------------------------------------------------
def test_the_page_makes_people_and_puts_them_into_teams(alice: Client) -> None:
    alice.post("/settings/people", {"username": "bob", "password": PASSWORD})
    page = alice.post("/settings/people/team/storage", {"user": "bob", "role": "manager"}, follow=True)
    assert "bob is manager of Storage" in page.content.decode()
    assert Membership.objects.get().role == "manager"
    alice.post("/settings/people/team/storage", {"user": "bob", "role": "none"})
    assert not Membership.objects.exists()


def test_where_teams_are_many_the_page_lists_them_and_shows_one_at_a_time(alice: Client) -> None:
    Team.objects.bulk_create(Team(slug=f"hall-{n}", name=f"Hall {n}") for n in range(20))
    users = get_user_model().objects
    hall = Team.objects.get(slug="hall-3")
    users.bulk_create(get_user_model()(username=f"engineer-{n:03}") for n in range(60))
    Membership.objects.bulk_create(Membership(team=hall, user=user, role="viewer") for user in users.all())
    page = alice.get("/settings/people").content.decode()
    assert '<a href="?team=hall-3">Hall 3</a> <span class="muted small">61 people</span>' in page
    assert "<select" not in page.partition('id="users-title"')[0]
    alone = alice.get("/settings/people?team=hall-3").content.decode()
    assert "1 to 50 of 61" in alone
    assert 'href="/settings/people?team=hall-3&amp;cursor=50"' in alone
    found = alice.get("/settings/people?team=hall-3&q=engineer-059").content.decode()
    assert "1 of 61" in found
    moved = alice.post("/settings/people/team/hall-4", {"user": "engineer-001", "role": "viewer"})
    assert moved.headers["Location"] == "/settings/people?team=hall-4#team-hall-4"
    assert alice.get("/settings/people?team=none").status_code == 404


def test_the_page_says_what_is_wrong_at_its_field(alice: Client) -> None:
    page = alice.post("/settings/people", {"username": "bob", "password": "short"})
    assert page.status_code == 400
    assert "too short" in page.content.decode()


def test_a_manager_changes_their_own_team_on_the_page_and_no_other(alice: Client) -> None:
    del alice
    bob = get_user_model().objects.create(username="bob")
    Membership.objects.create(team=Team.objects.get(slug="storage"), user=bob, role="manager")
    client = Client()
    client.force_login(bob)
    page = client.get("/settings/people").content.decode()
    assert 'action="/settings/people/team/storage"' in page
    assert 'action="/settings/people/team/network"' not in page
    answer = client.post("/settings/people/team/network", {"user": "bob", "role": "viewer"}, follow=True)
    assert "configure requires the role manager of network" in unescape(answer.content.decode())
    assert client.post("/settings/people", {"username": "eve"}).status_code == 403
    assert client.post("/settings/people/person/alice/off").status_code == 403


# The audit
# ----------------------------------------------------------------------------------------------------------
def test_a_change_is_in_the_audit_with_who_and_before_and_after(alice: Client) -> None:
    call(alice, "patch", "teams/storage", {"name": "Block storage"})
    for kind in ("analysis_schedule", "report_schedule", "webhook"):
        record_configuration(kind, f"a-{kind}", {"name": "x"}, None, Context("user:alice"))
    follow_to_the_end(FOLLOWER)
    page = alice.get("/settings/audit").content.decode()
    assert re.findall(r"Restore a-(\w+)", page) == ["report_schedule", "analysis_schedule"]
    assert "<strong>storage</strong>" in page
    assert "<td>alice</td>" in page
    assert "<del>Storage</del>" in page
    assert "<ins>Block storage</ins>" in page


def test_the_audit_can_be_asked_for_a_kind_and_a_person(alice: Client) -> None:
    call(alice, "patch", "teams/storage", {"name": "Block storage"})
    call(alice, "post", "users", {"username": "bob"})
    follow_to_the_end(FOLLOWER)
    for query, there, away in (
        ("kind=team", "<strong>storage", "<strong>bob"),
        ("kind=user", "<strong>bob", "<strong>storage"),
        ("actor=alice", "<strong>bob", "changes."),
        ("actor=bob", "changes.", "<strong>storage"),
        ("q=STOR", "<strong>storage", "<strong>bob"),
        ("since=2020-01-01", "<strong>bob", "changes."),
        ("until=2020-01-01", "changes.", "<strong>storage"),
    ):
        page = alice.get(f"/settings/audit?{query}").content.decode().partition("</form>")[2]
        assert there in page
        assert away not in page


def test_the_audit_has_pages_both_ways(alice: Client) -> None:
    for n in range(60):
        record_configuration("lamp", f"l{n}", None, {"n": n}, Context("user:alice"))
    follow_to_the_end(FOLLOWER)
    rows = changes(AuditQuery("lamp"))
    first = page_of_rows(rows, NEWEST, None)
    second = page_of_rows(rows, NEWEST, first.next)
    assert (first.previous, second.next) == (None, None)
    assert [row.key for row in first.items + second.items] == [f"l{n}" for n in reversed(range(60))]
    back = page_of_rows(rows, NEWEST, second.previous)
    assert [row.key for row in back.items] == [row.key for row in first.items]
    assert 'rel="next"' in alice.get("/settings/audit?kind=lamp").content.decode()


def test_a_batch_that_is_handled_twice_is_kept_once() -> None:
    record_configuration("lamp", "l1", None, {"n": 1}, Context("user:alice"))
    follow_to_the_end(FOLLOWER)
    FOLLOWER.handle(configured("lamp", "l1"))
    assert Change.objects.count() == 1


@pytest.mark.parametrize("query", ["before=zzz", "kind=%00&actor=%00"])
def test_nonsense_in_the_address_of_the_audit_breaks_nothing(alice: Client, query: str) -> None:
    assert alice.get(f"/settings/audit?{query}").status_code == 200


def test_the_audit_is_for_staff(client: Client) -> None:
    client.force_login(get_user_model().objects.create(username="bob"))
    assert client.get("/settings/audit").status_code == 403
