"""On-call load out of rotas, the log and real messages: over HTTP, on its page, as CSV and in the weekly report."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents import commands
from incidents.audit.follower import FOLLOWER
from incidents.oncall.models import OnCallSchedule, Override
from incidents.reports.models import ReportSchedule
from incidents.reports.periods import period_at
from incidents.reports.produce import produce, report, reproduce
from incidents.teams.models import Team
from ingest.api import keys
from ingest.queries import Context
from tests.following import follow_to_the_end
from tests.integration.incidents.notifications.cases import call, deliver, hook, hook_sink, person, ticket

pytestmark = pytest.mark.usefixtures("log_database")
NOW = datetime.now(UTC)
DAY = timedelta(days=1)
ALICE = Context("user:alice")


def test_load_is_that_of_the_rotas_of_the_time_and_of_the_messages_that_arrived() -> None:
    alice, bob, charlie = (person(name) for name in ("alice", "bob", "charlie"))
    get_user_model().objects.filter(pk=charlie.pk).update(is_staff=True)
    team = Team.objects.get(is_default=True)
    layer = {"name": "primary", "people": ["alice"], "start": "2020-01-06T09:00", "turn": "1w"}
    row = OnCallSchedule.objects.create(
        slug="primary", name="Primary", team=team, time_zone="Europe/Berlin", layers=[layer]
    )
    Override.objects.create(
        schedule=row,
        person=bob,
        starts_at=NOW - 3 * DAY,
        ends_at=NOW - 2 * DAY,
        reason="away",
        made_by="user:bob",
        made_at=NOW - 4 * DAY,
    )
    incident = ticket()
    with hook_sink() as sink:
        hook(alice, sink.url)
        call(incident)
        deliver()
        assert len(sink.taken) == 1
    commands.acknowledge(incident, ALICE)
    staff = Client()
    staff.force_login(charlie)
    changed = {"layers": [{**layer, "people": ["charlie"]}]}
    assert (
        staff.patch("/api/v1/schedules/primary", changed, content_type="application/json").status_code == 200
    )
    follow_to_the_end(FOLLOWER)

    key = keys.create("reader", ["incidents:read"])
    client = Client(headers={"authorization": f"Bearer {key}"})
    body = client.get("/api/v1/on_call_load?days=7").json()
    found = {one["person"]: one for one in body["people"]}
    # What the layers were counts, not what they are; seconds passed since the change.
    assert (found["alice"]["hours"], found["bob"]["hours"], found["charlie"]["hours"]) == (144, 24, 0)
    assert [found["alice"][name] for name in ("messages", "interruptions", "acknowledged")] == [1, 1, 1]
    assert found["alice"]["acknowledge_seconds"] is not None
    assert found["bob"]["interruptions"] == 0
    assert found["alice"]["time_zone"] == "Europe/Berlin"
    (of_team,) = body["teams"]
    assert (of_team["team"], of_team["hours"], of_team["most"]["person"]) == (team.slug, 168, "alice")
    assert client.get("/api/v1/on_call_load?days=7&team=network").json()["people"] == []
    for wrong in ("days=0", "days=93", "days=x", "team=none", "end=now", "weeks=3"):
        assert client.get(f"/api/v1/on_call_load?{wrong}").status_code == 400

    page = staff.get("/reports/on-call-load", {"days": "7", "sort": "person"}).content.decode()
    names = [page.index(f'<span class="title">{name}</span>') for name in ("alice", "bob", "charlie")]
    assert names == sorted(names)
    downloaded = staff.get("/reports/on-call-load", {"days": "7", "format": "csv"})
    lines = list(csv.DictReader(io.StringIO(downloaded.content.decode())))
    assert [(one["person"], one["hours"]) for one in lines] == [
        ("alice", "144.0"),
        ("bob", "24.0"),
        ("charlie", "0.0"),
    ]

    weekly = ReportSchedule.objects.get(name="weekly")
    week = period_at("weekly", NOW, weekly.zone)
    assert produce(weekly, week, NOW)
    made = report(f"weekly-{week.name}", NOW)["on_call"]
    assert {one["person"]: one["interruptions"] for one in made["people"]}["alice"] == 1
    assert reproduce(f"weekly-{week.name}")["on_call"]["people"][0]["acknowledged"] == 1
    text = client.get(f"/api/v1/reports/weekly-{week.name}?format=csv").content.decode()
    assert [
        one["count"]
        for one in csv.DictReader(io.StringIO(text))
        if (one["section"], one["name"], one["outcome"]) == ("on-call load", "alice", "interruptions")
    ] == ["1"]


def test_without_schedules_and_messages_the_page_says_so() -> None:
    bob = Client()
    bob.force_login(person("bob"))
    assert "No one was on call" in bob.get("/reports/on-call-load").content.decode()
    assert bob.get("/reports/on-call-load", {"days": "1000"}).status_code == 400
