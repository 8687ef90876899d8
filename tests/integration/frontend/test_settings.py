"""Pages of settings: who sees which button, what comes back after it was removed, teams, the audit."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from analyzers.api.schedules import KIND, schedule_as_json
from analyzers.queries import Schedule as Analysis
from incidents.api.saved_views import SavedViewSerializer, SavedViewsView
from incidents.oncall.models import OnCallSchedule
from incidents.reports.models import ReportSchedule
from incidents.saved_views.models import SavedView
from incidents.suppression.models import MaintenanceWindow
from incidents.teams.models import Membership, Route, Service, Team
from ingest.queries import Context, configured

pytestmark = pytest.mark.django_db


def signed_in(name: str = "alice", *, staff: bool = True) -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, is_staff=staff))
    return client


def manager(name: str = "bob", team: str = "storage") -> Client:
    """Somebody who manages a team, while Charlie responds for another."""
    client = signed_in(name, staff=False)
    for who, where, role in ((name, team, "manager"), ("charlie", "network", "responder")):
        user, _ = get_user_model().objects.get_or_create(username=who)
        Membership.objects.create(user=user, team=Team.objects.get(slug=where), role=role)
    return client


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200
    return answer.content.decode()


def said(client: Client, path: str, body: dict[str, Any]) -> str:
    return client.post(path, body, follow=True).content.decode()


# Who sees what
# ----------------------------------------------------------------------------------------------------------
def test_what_is_for_staff_alone_is_not_offered_to_others() -> None:
    assert "/settings/audit" in text(signed_in(), "/settings")
    assert "/settings/audit" not in text(signed_in("bob", staff=False), "/settings")


@pytest.mark.parametrize("path", ["/silences", "/teams", "/settings/policies", "/settings/maintenance"])
def test_a_page_of_settings_is_marked_in_the_navigation(path: str) -> None:
    assert f'href="{path}" aria-current="page"' in text(signed_in(), path)


def test_a_manager_edits_the_services_of_their_team_alone() -> None:
    ours, theirs = (
        Service.objects.create(slug=slug, name=slug, team=Team.objects.get(slug=slug))
        for slug in ("storage", "network")
    )
    bob = manager()
    shown = text(bob, "/settings/services")
    assert f"Edit {ours.name}" in shown
    assert f"Edit {theirs.name}" not in shown
    assert bob.post(f"/settings/services/{theirs.slug}/remove").status_code == 403
    assert Service.objects.filter(pk=theirs.pk).exists()


def test_a_manager_makes_a_schedule_of_their_team_and_is_told_when_it_is_of_another() -> None:
    bob = manager()
    form = {
        "slug": "disks", "name": "Disks", "time_zone": "UTC", "team": "storage", "layer-0-name": "one",
        "layer-0-people": "bob", "layer-0-start": "2026-01-05T09:00", "layer-0-every": "1", "layer-0-unit": "w",
    }  # fmt: skip
    assert bob.post("/settings/schedules/new", form).status_code == 302
    answer = bob.post("/settings/schedules/new", {**form, "slug": "links", "team": "network"})
    assert answer.status_code == 400
    assert "requires the role manager of network" in answer.content.decode()
    assert [one.slug for one in OnCallSchedule.objects.all()] == ["disks"]


def test_a_manager_moves_no_rule_that_belongs_to_no_team() -> None:
    row = Route.objects.create(name="first", pattern="x/*", order=1)
    bob = manager()
    assert f"Edit {row.name}" not in text(bob, "/settings/routes")
    assert bob.post("/settings/routes/first/remove").status_code == 403
    assert Route.objects.filter(name="first").exists()


def test_a_manager_adds_rules_beneath_those_of_the_team_and_changes_no_other() -> None:
    team = Team.objects.get(slug="storage")
    given = Route.objects.create(name="given", pattern="x/*", order=1, team=team)
    Route.objects.create(name="mine", pattern="x/a", order=1, team=team, parent=given)
    shown = text(manager(), "/settings/routes?under=given")
    assert "Add a child rule to given" in shown
    assert "Edit given" not in shown
    assert "Edit mine" in shown
    assert "top level</option>" not in shown
    assert "top level</option>" in text(signed_in(), "/settings/routes?under=given")


def test_a_responder_finds_no_form_and_is_refused() -> None:
    manager()
    client = Client()
    client.force_login(get_user_model().objects.get(username="charlie"))
    assert 'id="edit"' not in text(client, "/settings/policies")
    assert client.post("/settings/policies", {}).status_code == 403


# Undo of a removal
# ----------------------------------------------------------------------------------------------------------
def test_what_was_removed_comes_back_as_it_was_and_both_are_recorded() -> None:
    alice = signed_in()
    team = Team.objects.get(slug="storage")
    Service.objects.create(slug="blocks", name="Blocks", team=team, patterns=["disk/*"], description="d")
    shown = said(alice, "/settings/services/blocks/remove", {})
    assert '<input type="hidden" name="key" value="blocks">' in shown
    assert "Blocks restored" in said(alice, "/settings/restore", {"kind": "service", "key": "blocks"})
    row = Service.objects.get(slug="blocks")
    assert (row.name, row.team, row.patterns, row.description) == ("Blocks", team, ["disk/*"], "d")
    assert [one.body["after"] is None for one in configured("service", "blocks")] == [True, False]


def test_planned_work_comes_back_too() -> None:
    alice = signed_in()
    work = {"slug": "row-3", "components": "tor/*", "span": "4 h", "reason": "CHG-1", "again": "every week"}
    assert alice.post("/settings/maintenance", work).status_code == 302
    alice.post("/settings/maintenance/row-3/remove")
    said(alice, "/settings/restore", {"kind": "maintenance", "key": "row-3"})
    assert MaintenanceWindow.objects.get().rule == "FREQ=WEEKLY"


def test_a_schedule_of_an_analyzer_comes_back_with_all_that_was_set() -> None:
    alice = signed_in()
    row = Analysis.objects.create(
        name="often",
        analyzer="deepview",
        region="eu",
        length=timedelta(hours=2),
        every=timedelta(minutes=7),
        enabled=False,
    )
    before = schedule_as_json(row)
    shown = said(alice, "/schedules/often/remove", {})
    assert '<input type="hidden" name="key" value="often">' in shown
    assert "often restored" in said(alice, "/settings/restore", {"kind": KIND, "key": "often"})
    assert schedule_as_json(Analysis.objects.get(name="often")) == before


def test_a_schedule_of_reports_comes_back_and_says_that_nobody_gets_it_yet() -> None:
    alice = signed_in()
    ReportSchedule.objects.create(
        name="mondays", title="Mondays", cadence="weekly", zone="Europe/Berlin", hour=6
    )
    body = {"kind": "report_schedule", "key": "mondays"}
    said(alice, "/reports/schedules/mondays/remove", {})
    assert "Subscribers must subscribe again" in said(alice, "/settings/restore", body)
    kept = ReportSchedule.objects.get(name="mondays")
    assert (kept.title, kept.zone, kept.hour) == ("Mondays", "Europe/Berlin", 6)


def test_a_view_of_the_inbox_comes_back_from_the_audit() -> None:
    alice = signed_in()
    view = {"slug": "disks", "name": "Disks", "team": "storage", "search": "disk"}
    serializer = SavedViewSerializer(data=view)
    assert serializer.is_valid(), serializer.errors
    catalog = SavedViewsView.acting_for(Context("user:alice"))
    catalog.put(serializer)
    catalog.perform_destroy(SavedView.objects.get())
    assert "Disks restored" in said(alice, "/settings/restore", {"kind": "saved_view", "key": "disks"})


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ({"kind": "webhook", "key": "x"}, 404),
        ({"kind": "", "key": ""}, 404),
        ({"kind": "service", "key": "never"}, 302),
        ({"kind": "service", "key": "\0" * 9}, 302),
    ],
    ids=str,
)
def test_what_cannot_be_put_back_is_said(body: dict[str, str], status: int) -> None:
    before = Service.objects.count()
    assert signed_in().post("/settings/restore", body).status_code == status
    assert Service.objects.count() == before


def test_what_is_there_is_not_put_back_twice() -> None:
    alice = signed_in()
    Service.objects.create(slug="blocks", name="Blocks")
    alice.post("/settings/services/blocks/remove")
    for words in ("restored", "was not removed"):
        assert words in said(alice, "/settings/restore", {"kind": "service", "key": "blocks"})


def test_a_manager_puts_back_what_was_of_their_team_alone() -> None:
    for slug in ("storage", "network"):
        Service.objects.create(slug=slug, name=slug, team=Team.objects.get(slug=slug))
    alice, bob = signed_in(), manager()
    for slug in ("storage", "network"):
        alice.post(f"/settings/services/{slug}/remove")
    answers = [bob.post("/settings/restore", {"kind": "service", "key": k}) for k in ("storage", "network")]
    assert [one.status_code for one in answers] == [302, 403]
    assert [one.slug for one in Service.objects.all()] == ["storage"]


# Teams
# ----------------------------------------------------------------------------------------------------------
def test_a_team_is_made_changed_and_removed() -> None:
    alice = signed_in()
    alice.post("/teams", {"name": "GPU fleet", "slug": "gpu", "description": "Nodes"})
    alice.post("/teams", {"edited": "gpu", "name": "GPUs", "slug": "gpu", "is_default": "on"})
    assert [one.slug for one in Team.objects.filter(is_default=True)] == ["gpu"]
    assert "default" in said(alice, "/teams/gpu/remove", {})
    alice.post("/teams", {"edited": "on-call", "name": "On-call", "slug": "on-call", "is_default": "on"})
    said(alice, "/teams/gpu/remove", {})
    assert not Team.objects.filter(slug="gpu").exists()


@pytest.mark.parametrize(
    "changed",
    [{"name": ""}, {"slug": "a b"}, {"slug": "storage"}, {"name": "\0"}, {"name": "x" * 121}],
    ids=str,
)
def test_a_team_that_cannot_be_is_said_at_its_field(changed: dict[str, str]) -> None:
    answer = signed_in().post("/teams", {"name": "GPU", "slug": "gpu", **changed})
    assert answer.status_code == 400
    assert 'role="alert"' in answer.content.decode()
    assert not Team.objects.filter(slug="gpu").exists()


def test_the_default_team_stays_until_another_one_is() -> None:
    answer = signed_in().post("/teams", {"edited": "on-call", "name": "On-call", "slug": "on-call"})
    assert answer.status_code == 400
    assert "make another one the default" in answer.content.decode()


def test_who_is_not_staff_makes_no_team() -> None:
    assert manager().post("/teams", {"name": "GPU", "slug": "gpu"}).status_code == 403


# People
# ----------------------------------------------------------------------------------------------------------
def test_somebody_is_found_among_many_by_a_part_of_their_name() -> None:
    get_user_model().objects.bulk_create([get_user_model()(username=f"engineer-{n:03}") for n in range(150)])
    alice = signed_in()
    everybody = text(alice, "/settings/people").partition('id="users-title"')[2]
    assert "1 to 50 of 151" in everybody
    assert 'href="/settings/people?cursor=50#users-title"' in everybody
    found = text(alice, "/settings/people?q=R-149").partition('id="users-title"')[2]
    assert "<td>engineer-149" in found
    assert "<td>engineer-148" not in found
    assert "None of the 151 people" in text(alice, "/settings/people?q=%25")
    assert "<td>engineer-120" in text(alice, "/settings/people?show=engineer-120")
