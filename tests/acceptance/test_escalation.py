"""Stories of incidents that nobody answers, with time that is moved on, a real Postgres and a real receiver
of pages.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.db import transaction

from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.incident import commands as c
from incidents.domain.routing.rules import route
from incidents.domain.values import rfc3339
from incidents.escalation.models import EscalationPolicy, EscalationRow
from incidents.incident.backfill import OF_THE_PAST, PastIncident, record_past
from incidents.incident.models import IncidentRow
from incidents.incident.rebuild import rebuild_incidents
from incidents.incident.repository import next_number, record_opening
from incidents.notifications.dispatcher import deliver_due
from incidents.notifications.models import Notification, NotificationDelivery, Preferences
from incidents.oncall.models import OnCallSchedule
from incidents.oncall.queries import on_call
from incidents.teams.models import Team, routing_table
from ingest.queries import Context
from tests.integration.incidents.escalation.cases import Clock, people, policy, stands, told
from tests.integration.incidents.notifications.cases import HookSink, hook, hook_sink, until
from tests.places import ROOT

pytestmark = pytest.mark.usefixtures("log_database")
MONITORING = Context("key:monitoring")
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture
def pager() -> Iterator[HookSink]:
    """Alice and Bob carry pagers, and Storage calls Alice, then Bob, and both once more."""
    with hook_sink() as sink:
        people("alice", "bob")
        for user in User.objects.all():
            hook(user, sink.url)
            Preferences.objects.create(user=user, bundle_seconds=0)
        policy()
        yield sink


class Story:
    """One incident of Storage; `later` lets time pass, and what is due is swept and delivered."""

    def __init__(self, severity: str = "critical") -> None:
        report = Report("Disks fail", component="storage_cluster/s7", severity=severity)  # type: ignore[arg-type]
        self.id = commands.open_incident(report, MONITORING).incident.id
        self.clock = Clock(self.id)

    @classmethod
    def at(cls, opened: datetime) -> Story:
        """Of an incident that is opened at that moment."""
        report = Report("Disks fail", component="storage_cluster/s7", severity="critical")
        story = cls.__new__(cls)
        with transaction.atomic():
            routing = route(report.subject(opened), routing_table())
            opening = c.Open(str(uuid.uuid4()), next_number(), routing, report)
            story.id = record_opening(opening, MONITORING, opened).incident.id
        story.clock = Clock(story.id)
        return story

    def later(self, minutes: float = 0) -> None:
        self.clock.later(minutes * 60)
        deliver_due(self.clock.now)

    @property
    def state(self) -> str:
        return queries.get(self.id).incident.state


def paged() -> list[str | None]:
    """People who were sent a page, in the order of the calls."""
    return list(
        Notification.objects.filter(outcome="sent").order_by("made_at").values_list("person", flat=True)
    )


def test_nobody_answers_and_it_climbs_until_that_is_recorded(pager: HookSink) -> None:
    story = Story()
    for minutes in (0, 5, 5, 5, 5):
        story.later(minutes)
    lines = [text for text in told(story.id) if text.startswith(("Dossier notified", "escalation ended"))]
    assert [line.partition(":")[0] for line in lines] == [
        "Dossier notified alice (step 1 of 2, round 1 of 2)",
        "Dossier notified bob (step 2 of 2, round 1 of 2)",
        "Dossier notified alice (step 1 of 2, round 2 of 2)",
        "Dossier notified bob (step 2 of 2, round 2 of 2)",
        "escalation ended",
    ]
    assert len(pager.taken) == 4
    assert (stands(story.id).phase, story.state) == ("exhausted", "open")
    assert rebuild_incidents([story.id]) == []


def test_acknowledged_and_forgotten_it_escalates_again(pager: HookSink) -> None:
    story = Story()
    story.later()
    commands.acknowledge(story.id, Context("user:alice"))
    story.clock.now = datetime.now(UTC)
    story.later(29)
    assert (story.state, len(pager.taken)) == ("acknowledged", 1)
    story.later(2)
    assert (story.state, len(pager.taken)) == ("open", 2)
    assert "open again: acknowledged by alice, no progress for 31 min" in told(story.id)


def test_who_answers_stops_it_for_everybody(pager: HookSink) -> None:
    story = Story()
    story.later()
    commands.acknowledge(story.id, Context("user:alice"))
    story.clock.now = datetime.now(UTC)
    story.later(10)
    assert len(pager.taken) == 1


def test_the_wrong_team_is_called_it_bounces_the_ticket_and_it_is_settled(pager: HookSink) -> None:
    people("charlie")
    hook(User.objects.get(username="charlie"), pager.url)
    policy("network", "network", steps=[{"actions": [{"person": "charlie"}]}])
    story = Story()
    story.later()
    for step in ("hand_over", "bounce"):
        if step == "hand_over":
            commands.hand_over(story.id, "network", "the ToR drops packets", Context("user:alice"))
        else:
            commands.bounce(story.id, "the ToR is fine", Context("user:charlie"))
        story.clock.now = datetime.now(UTC)
        story.later()
    calls = Notification.objects.order_by("made_at").values_list("person", flat=True)
    assert (list(calls), len(pager.taken)) == (["alice", "charlie", "alice"], 3)
    commands.acknowledge(story.id, Context("user:alice"))
    commands.resolve(story.id, "firmware", "rolled back", Context("user:alice"))
    story.clock.now = datetime.now(UTC)
    story.later(60)
    done = queries.get(story.id).incident
    assert (done.state, done.team, done.hops, done.rejections) == ("resolved", "storage", 2, 1)
    assert set(done.team_seconds) == {"storage", "network"}
    assert done.seconds_to_team is not None
    assert all(
        any(why in text for text in told(story.id)) for why in ("the ToR drops packets", "the ToR is fine")
    )
    assert len(pager.taken) == 3
    assert rebuild_incidents([story.id]) == []


@contextmanager
def deliverer(database: str) -> Iterator[subprocess.Popen[bytes]]:
    """`manage.py deliver` as it runs in production, with a broker that nobody is at."""
    environment = {
        **os.environ,
        "DATABASE_URL": database,
        "DOSSIER_SECRET_KEY": "tests",
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "REDIS_URL": NOWHERE,
        "DOSSIER_OUTBOUND_ALLOWED_NETWORKS": "127.0.0.0/8",
    }
    command = [sys.executable, str(ROOT / "manage.py"), "deliver"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(60)


def test_after_an_outage_of_six_hours_people_are_called_in_turn_and_not_all_at_once(pager: HookSink) -> None:
    story = Story()
    story.clock.now += timedelta(hours=6)  # nothing ran: no sweep, no delivery
    story.later()
    assert paged() == ["alice"]
    story.later(4)
    assert len(pager.taken) == 1  # Alice has the time to answer that the policy gives her
    story.later(1)
    assert paged() == ["alice", "bob"]
    assert Notification.objects.exclude(outcome="sent").count() == 0
    assert rebuild_incidents([story.id]) == []


def test_what_delivery_was_paused_for_is_sent_once_when_it_goes_on(pager: HookSink) -> None:
    story = Story()
    for _ in range(3):
        story.clock.later(5 * 60)  # escalates, and nothing is delivered
    deliver_due(story.clock.now)
    told = [(headers["Idempotency-Key"], body["incidents"][0]["id"]) for headers, body in pager.taken]
    assert len(told) == len(set(told)) > 0
    assert not Notification.objects.exclude(state="done").exists()
    commands.acknowledge(story.id, Context("user:alice"))
    before = len(pager.taken)
    story.later(5)
    assert len(pager.taken) == before


@pytest.mark.parametrize(
    ("opened", "turns"),
    [
        # The clocks go forward at 02:00 (01:00 UTC): the turn at 03:00 is fifteen minutes away, not an hour and more.
        (datetime(2027, 3, 28, 0, 45, tzinfo=UTC), "2026-01-01T03:00"),
        # They go back at 03:00 (01:00 UTC): 02:30 comes twice, and the turn is at the first.
        (datetime(2027, 10, 31, 0, 15, tzinfo=UTC), "2026-01-01T02:30"),
    ],
)
def test_in_the_night_when_the_clocks_change_the_one_on_call_is_called(
    pager: HookSink, opened: datetime, turns: str
) -> None:
    names = ["alice", "bob"]
    layer = {"name": "daily", "people": names, "start": turns, "turn": "1d"}
    storage = Team.objects.get(slug="storage")
    OnCallSchedule.objects.create(
        slug="rota", name="Rota", team=storage, time_zone="Europe/Berlin", layers=[layer]
    )
    steps = [{"after": after, "actions": [{"schedule": "rota"}]} for after in (0, 1800, 3600)]
    EscalationPolicy.objects.update(steps=steps, repeats=0)
    before, after = on_call("rota", opened), on_call("rota", opened + timedelta(hours=12))
    story = Story.at(opened)
    for minutes in (0, 30, 60):  # the last is 02:15 there for the second time, or 03:15 and more
        story.later(minutes)
    assert (paged(), len(pager.taken)) == ([*before, *after, *after], 3)
    assert before != after


def test_with_the_broker_down_for_ten_minutes_everybody_is_called(log_database: str, pager: HookSink) -> None:
    story = Story()
    with deliverer(log_database):
        until(lambda: len(pager.taken) == 1, patience=60)
        for seconds, pages in ((300, 2), (300, 3)):
            # Minutes pass: what is due in five of them is due now.
            _pass(story.id, seconds)
            until(lambda pages=pages: len(pager.taken) == pages, patience=60)  # type: ignore[misc]
    assert stands(story.id).called == ("alice", "bob")


def _pass(id_: str, seconds: float) -> None:
    row = EscalationRow.objects.get(incident__pk=id_)
    assert row.due_at is not None
    due = row.due_at - timedelta(seconds=seconds)
    row.state["due_at"], row.due_at = rfc3339(due), due
    row.save()


def test_a_worker_killed_in_the_middle_of_a_page_loses_none_and_sends_none_as_another(
    log_database: str, pager: HookSink
) -> None:
    stories = [Story() for _ in range(6)]
    pager.silent = threading.Event()
    with deliverer(log_database) as first:
        assert pager.asked.wait(60)
        first.send_signal(signal.SIGKILL)
        first.wait(60)
    silent, pager.silent = pager.silent, None
    silent.set()
    under_way = set(
        NotificationDelivery.objects.filter(lease_until__isnull=False).values_list("message", flat=True)
    )
    assert under_way
    with deliverer(log_database):
        until(lambda: Notification.objects.filter(outcome="sent").count() == len(stories), patience=90)
    assert Notification.objects.count() == len(stories)
    keys = [headers["Idempotency-Key"] for headers, _ in pager.taken]
    assert len(keys) == len(set(keys))
    assert {str(key) for key in under_way} <= set(keys)
    about = [one["id"] for _, body in pager.taken for one in body["incidents"]]
    assert sorted(about) == sorted(story.id for story in stories)


def test_nobody_is_called_for_a_ticket_of_the_past() -> None:
    people("alice")
    policy()
    opened = datetime.now(UTC) - timedelta(days=3)
    past = record_past(
        PastIncident(Report("Disks failed", component="storage_cluster/s7"), opened), MONITORING
    )
    assert stands(past.id).due_at is None
    assert told(past.id)[-1] == f"no one is paged: {OF_THE_PAST}"
    assert IncidentRow.objects.get(pk=past.id).state == "open"
