"""Alert rules out of real alerts, messages and actions: over HTTP, on the page, as CSV and in the weekly report."""

from __future__ import annotations

import csv
import io
from datetime import UTC, datetime

import pytest
from django.test import Client

from incidents import commands
from incidents.domain.escalation.policy import steps_from
from incidents.escalation.models import EscalationPolicy
from incidents.follower import follower
from incidents.incident.models import IncidentRow
from incidents.reports.models import ReportSchedule
from incidents.reports.periods import period_at
from incidents.reports.produce import produce, report
from incidents.teams.models import Team
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.integrations.normalized import Alert, Parsed
from ingest.queries import Context
from tests.following import follow_to_the_end
from tests.integration.incidents.notifications.cases import call, deliver, hook, hook_sink, person

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")


def send(name: str, host: str, status: str = "firing") -> None:
    labels = {"alertname": name, "instance": host}
    alert = Alert(f"{name}/{host}", status, f"{name} on {host}", group=name, labels=labels)  # type: ignore[arg-type]
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())


def incident(name: str) -> str:
    """Id of the incident of the last firing."""
    return str(IncidentRow.objects.filter(labels__alertname=name).latest("number").pk)


def test_a_rule_that_wakes_for_nothing_has_a_proposal_and_a_useful_one_has_none() -> None:
    key = keys.create("reader", ["incidents:read"])
    client = Client(headers={"authorization": f"Bearer {key}"})
    bob = Client()
    bob.force_login(person("bob"))
    assert client.get("/api/v1/alert_rules").json()["rules"] == []
    assert "No alert fired" in bob.get("/reports/alert-rules").content.decode()
    team = Team.objects.get(is_default=True)
    steps = [one.as_json() for one in steps_from([{"after": 0, "actions": [{"person": "alice"}]}])]
    EscalationPolicy.objects.update_or_create(team=team, defaults={"slug": "p", "name": "P", "steps": steps})
    with hook_sink() as sink:
        hook(person(bundle_seconds=0), sink.url)
        for place in range(5):
            send("Noise", f"h{place}")
            call(incident("Noise"))
            deliver()
            send("Noise", f"h{place}", "resolved")
        send("DiskFull", "a")
        call(incident("DiskFull"))
        deliver()
        commands.resolve(incident("DiskFull"), "disk/a", "", ALICE)
        follow_to_the_end(follower())
        assert len(sink.taken) >= 6

    body = client.get("/api/v1/alert_rules").json()
    noise, disk = body["rules"]
    assert [noise[name] for name in ("rule", "verdict", "firings", "incidents", "calls", "ignored")] == [
        "Noise", "ignored", 5, 5, 5, 5
    ]  # fmt: skip
    assert noise["matchers"] == ['alertname="Noise"', 'integration="prometheus"']
    assert [disk[name] for name in ("rule", "verdict", "acted", "wasted_calls", "tried")] == [
        "DiskFull", "useful", 1, 0, False
    ]  # fmt: skip
    best = noise["proposal"]
    assert (best["change"], best["minutes"], best["calls_before"], best["calls_after"]) == ("for", 5, 5, 0)
    assert (best["missed"], best["replayed"]) == (0, False)
    (deleted,) = (one for one in noise["alternatives"] if one["change"] == "delete")
    assert deleted["replayed"]  # five incidents, each of which would call Alice by the policy
    assert (deleted["calls_before"], deleted["calls_after"]) == (5, 0)
    for wrong in ("days=0", "days=91", "end=now", "weeks=3"):
        assert client.get(f"/api/v1/alert_rules?{wrong}").status_code == 400

    page = bob.get("/reports/alert-rules").content.decode()
    assert "Fire only after 5 min more" in page
    assert "alertname%3D%22Noise%22" in page
    downloaded = bob.get("/reports/alert-rules", {"format": "csv", "sort": "rule"}).content.decode()
    lines = list(csv.DictReader(io.StringIO(downloaded)))
    assert [(one["rule"], one["calls_after"]) for one in lines] == [("DiskFull", ""), ("Noise", "0")]

    weekly = ReportSchedule.objects.get(name="weekly")
    now = datetime.now(UTC)
    week = period_at("weekly", now, weekly.zone)
    assert produce(weekly, week, now)
    made = report(f"weekly-{week.name}", now)["alert_rules"]
    assert [one["rule"] for one in made["rules"]] == ["Noise", "DiskFull"]
    assert "Fire only after 5 min more" in bob.get(f"/reports/weekly-{week.name}").content.decode()
