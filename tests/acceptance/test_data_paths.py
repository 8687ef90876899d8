"""Number of files that the two data paths run through. `make trace` prints them by stage.

A path that grows beyond its ceiling is a reason to look, and to lower it again.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from analyzers.runs import execution, scheduler
from analyzers.runs.models import Run, Schedule
from analyzers.runs.scheduler import claim_due
from incidents import follower
from incidents.escalation.sweep import sweep
from incidents.notifications.dispatcher import deliver_due
from incidents.notifications.models import Notification, Preferences
from incidents.queries import list_incidents
from incidents.teams.models import routing_table
from ingest.api import keys
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door
from tests.integration.analyzers.runs.test_deepview import failures, hourly, placed
from tests.integration.incidents.escalation.cases import people, policy
from tests.integration.incidents.notifications.cases import HookSink, hook, hook_sink
from tests.tracing import Stage, distinct, report, traced

pytestmark = pytest.mark.usefixtures("log_database")
SICK = "storage_cluster/s4"
ENDPOINT, TELEMETRY, ALERT = 16, 70, 50
"""Ceilings; last measured 15, 70 and 50. The aims are 15, 70 and 50."""


@pytest.fixture
def pager() -> Iterator[HookSink]:
    """Alice is paged for incidents of Storage."""
    with hook_sink() as sink:
        people("alice", "bob")
        for user in User.objects.all():
            hook(user, sink.url)
            Preferences.objects.create(user=user, bundle_seconds=0)
        policy()
        yield sink


def telemetry_to_page() -> list[Stage]:
    """A row of a failing unit, the run over its hour, the finding, and the page of the incident."""
    routing_table()  # parsed by the first alert or finding of a process, and again when it changes
    sender = Door(keep_schedules=True)
    schedule = hourly()
    sender.post(placed(), kind="placement")
    sender.post([{"time": TOP.isoformat(), "unit": "vm/0"}, *failures(0)], kind="unit_failure")
    sender.post(failures(1, sick=SICK), kind="unit_failure")
    _queue_and_run(schedule, Stage("warm"))
    late = {"time": (TOP + 2 * HOUR + timedelta(minutes=2)).isoformat(), "unit": "vm/1"}
    with traced("HTTP request, row committed") as taken:
        answer = sender.client.post("/api/v1/telemetry/unit_failure", json.dumps([late]), "application/json")
    assert answer.status_code == 202, answer.content
    with traced("data clock, window due") as due:
        scheduler.catch_up()
    judged = Stage("run: read, judge, record")
    _queue_and_run(schedule, judged)
    with traced("finding, incident opened") as opened:
        follow_to_the_end(follower.follower())
    (found,) = list_incidents().items
    assert found.incident.component == SICK
    alice = Client()
    alice.force_login(User.objects.create_user("alice", is_staff=True))
    assert alice.get("/").status_code == 200
    with traced("page of the incident") as page:
        assert alice.get(reverse("incident", args=[found.incident.number])).status_code == 200
    return [taken, due, judged, opened, page]


def _queue_and_run(schedule: Schedule, stage: Stage) -> None:
    while True:
        queued = list(Run.objects.filter(state="queued").values_list("pk", flat=True))
        if not queued and not claim_due([schedule], NOW):
            return
        for run in queued:
            with traced(stage.name) as seen:
                execution.execute(run, lambda: datetime.now(UTC))
            stage.files |= seen.files
            stage.calls += seen.calls


def alert_to_notification(pager: HookSink) -> list[Stage]:
    """A firing alert, its incident, the escalation and the page that Alice gets."""
    client = Client(headers={"Authorization": f"Bearer {keys.create('alertmanager', ['alerts'])}"})

    def fire(name: str) -> Stage:
        labels = {"alertname": name, "component": f"{SICK}-{name}", "severity": "critical"}
        with traced("HTTP request, alert committed") as stage:
            answer = client.post("/api/v2/alerts", [{"labels": labels}], "application/json")
        assert answer.status_code == 200, answer.content
        return stage

    fire("warm")
    follow_to_the_end(follower.follower())
    fired = fire("disks")
    with traced("alert, incident opened") as opened:
        follow_to_the_end(follower.follower())
    with traced("escalation step") as called:
        while sweep(datetime.now(UTC) + MINUTE):
            pass
    with traced("notification sent") as sent:
        deliver_due(datetime.now(UTC) + MINUTE)
    assert Notification.objects.filter(outcome="sent", person="alice").exists()
    assert pager.taken
    return [fired, opened, called, sent]


def show(text: str) -> None:
    """Print it where `make trace` does not capture."""
    sys.stdout.write(f"{text}\n")


def test_a_telemetry_row_to_the_page_of_its_incident() -> None:
    stages = telemetry_to_page()
    show(report("telemetry row -> page of the incident", stages))
    assert len(stages[0].files) <= ENDPOINT
    assert len(distinct(stages)) <= TELEMETRY


def test_an_alert_to_its_notification(pager: HookSink) -> None:
    stages = alert_to_notification(pager)
    show(report("alert -> notification", stages))
    assert len(distinct(stages)) <= ALERT
