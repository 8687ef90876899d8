"""Stories of tickets that nobody answers, with time that is moved on, a real Postgres and a real receiver of pages."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from django.contrib.auth.models import User

from incidents import commands, queries
from incidents.commands import Report
from incidents.delivery.models import Notification, Preferences, Sending
from incidents.delivery.running import deliver_due
from incidents.domain.times import rfc3339
from incidents.escalation.models import EscalationRow
from incidents.past import NOBODY, PastTicket, record_past
from incidents.projections.models import IncidentRow
from incidents.projections.rebuild import rebuild_incidents
from ingest.queries import Context
from tests.integration.delivery_cases import HookSink, hook, hook_sink, until
from tests.integration.escalation_cases import Clock, people, policy, stands, told

pytestmark = pytest.mark.usefixtures("log_database")
ROOT = Path(__file__).parents[2]
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
    """One ticket of Storage; `later` lets time pass, and what is due is swept and delivered."""

    def __init__(self, severity: str = "critical") -> None:
        report = Report("Disks fail", component="storage_cluster/s7", severity=severity)  # type: ignore[arg-type]
        self.id = commands.open_incident(report, MONITORING).incident.id
        self.clock = Clock(self.id)

    def later(self, minutes: float = 0) -> None:
        self.clock.later(minutes * 60)
        deliver_due(self.clock.now)

    @property
    def state(self) -> str:
        return queries.get(self.id).incident.state


def test_nobody_answers_and_it_climbs_until_that_is_recorded(pager: HookSink) -> None:
    story = Story()
    for minutes in (0, 5, 5, 5, 5):
        story.later(minutes)
    lines = [text for text in told(story.id) if "called" in text]
    assert [line.partition(":")[0] for line in lines] == [
        "Dossier called alice (step 1 of 2, round 1 of 2)",
        "Dossier called bob (step 2 of 2, round 1 of 2)",
        "Dossier called alice (step 1 of 2, round 2 of 2)",
        "Dossier called bob (step 2 of 2, round 2 of 2)",
        "nobody is called any more",
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
    assert "it is open again: acknowledged by alice, and nothing was done about it for 31 min" in told(
        story.id
    )


def test_who_answers_stops_it_for_everybody(pager: HookSink) -> None:
    story = Story()
    story.later()
    commands.acknowledge(story.id, Context("user:alice"))
    story.clock.now = datetime.now(UTC)
    story.later(10)
    assert len(pager.taken) == 1


def test_handed_over_it_calls_the_other_team_and_bounced_the_first_again(pager: HookSink) -> None:
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


@contextmanager
def deliverer(database: str) -> Iterator[subprocess.Popen[bytes]]:
    """`manage.py deliver` as it runs in production, with a broker that nobody is at."""
    environment = {
        **os.environ,
        "DATABASE_URL": database,
        "DJANGO_SETTINGS_MODULE": "deploy.settings",
        "REDIS_URL": NOWHERE,
        "OUTGOING_ALLOW": "127.0.0.0/8",
    }
    command = [sys.executable, str(ROOT / "manage.py"), "deliver"]
    process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        yield process
    finally:
        if process.poll() is None:
            process.kill()
        process.wait(20)


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
        first.wait(20)
    silent, pager.silent = pager.silent, None
    silent.set()
    under_way = set(Sending.objects.filter(lease_until__isnull=False).values_list("message", flat=True))
    assert under_way
    Sending.objects.filter(state="waiting").update(lease_until=datetime.now(UTC))
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
    past = record_past(PastTicket(Report("Disks failed", component="storage_cluster/s7"), opened), MONITORING)
    assert stands(past.id).due_at is None
    assert told(past.id)[-1] == f"nobody is called: {NOBODY}"
    assert IncidentRow.objects.get(pk=past.id).state == "open"
