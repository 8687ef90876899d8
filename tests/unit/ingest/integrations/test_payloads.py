"""Bodies that real senders sent (tests/golden/payloads), read by their endpoints."""

from __future__ import annotations

import json
from datetime import UTC, datetime

import pytest

from ingest.integrations import pagerduty, prometheus
from ingest.integrations.normalized import Alert
from ingest.integrations.prometheus import fingerprint
from tests.places import PAYLOADS


def golden(name: str) -> bytes:
    return (PAYLOADS / name).read_bytes()


def from_prometheus(name: str) -> dict[str, Alert]:
    """The alerts of a body by title, as they stand when the later of its ends of disks has come."""
    body = golden(f"prometheus/{name}.json")
    disks_end = datetime.fromisoformat(
        min(alert["endsAt"] for alert in json.loads(golden("prometheus/resolved.json")))
    )
    parsed = prometheus.alerts(body, disks_end)
    assert parsed.refused == ()
    return {alert.title: alert for alert in parsed.alerts}


def delivered(name: str) -> tuple[Alert, ...]:
    parsed = prometheus.webhook(golden(f"alertmanager/{name}.json"))
    assert parsed.refused == ()
    return parsed.alerts


def sent(name: str) -> Alert:
    return pagerduty.event(golden(f"{name}.json"), "new").alert


def test_prometheus_fires_and_resolves_the_same_alerts() -> None:
    firing, resolved = from_prometheus("firing"), from_prometheus("resolved")
    disk = "Disk of db-1:9100 is almost full"
    assert (firing[disk].status, resolved[disk].status) == ("firing", "resolved")
    assert (firing[disk].key, firing[disk].starts_at) == (resolved[disk].key, resolved[disk].starts_at)
    assert {alert.key for alert in firing.values()} == {alert.key for alert in resolved.values()}


def test_an_alert_of_prometheus_has_all_that_a_ticket_shows() -> None:
    disk = from_prometheus("firing")["Disk of db-2:9100 is almost full"]
    assert (disk.severity, disk.group, disk.component) == ("critical", "DiskAlmostFull", "host/db-2")
    assert disk.description == "98 % of /var is used on db-2:9100.\nIt fills in 2 h: “soon”."
    assert [link["text"] for link in disk.links] == ["Query in Prometheus", "Runbook"]
    assert disk.labels["cluster"] == "dc1"
    assert disk.notes == ()


def test_an_alert_without_annotations_is_named_by_its_rule() -> None:
    assert from_prometheus("firing")["Watchdog on cluster/dc1"].severity == "info"


@pytest.mark.parametrize("name", ["webhook-firing", "webhook-resolved"])
def test_fingerprints_are_those_that_alertmanager_computes(name: str) -> None:
    alerts = json.loads(golden(f"alertmanager/{name}.json"))["alerts"]
    assert [fingerprint(alert["labels"]) for alert in alerts] == [alert["fingerprint"] for alert in alerts]


def test_alertmanager_passes_on_the_keys_that_prometheus_s_alerts_have() -> None:
    keys = {alert.key for alert in from_prometheus("firing").values()}
    assert {alert.key for alert in delivered("webhook-firing")} < keys


def test_alertmanager_resolves_the_alerts_that_it_fired() -> None:
    firing, resolved = delivered("webhook-firing"), delivered("webhook-resolved")
    assert {alert.status for alert in firing + resolved} == {"firing", "resolved"}
    assert [(a.key, a.starts_at) for a in firing] == [(a.key, a.starts_at) for a in resolved]


def test_alerts_that_alertmanager_cut_are_told() -> None:
    [alert] = delivered("webhook-truncated")
    assert alert.notes == ("1 more alert of this group was left out by the sender (max_alerts)",)


def test_alertmanager_s_events_for_pagerduty_fire_and_resolve_one_key() -> None:
    trigger, resolve = sent("alertmanager/pagerduty-trigger"), sent("alertmanager/pagerduty-resolve")
    assert (trigger.status, resolve.status, trigger.key) == ("firing", "resolved", resolve.key)
    assert trigger.title == "[FIRING:2] DiskAlmostFull (dc1 node critical storage)"
    assert trigger.description.startswith("firing:\nLabels:\n - alertname = DiskAlmostFull\n")
    assert trigger.component is None


def test_what_amtool_adds_fires_for_five_minutes() -> None:
    now = datetime(2026, 1, 31, tzinfo=UTC)
    [alert] = prometheus.alerts(golden("alertmanager/amtool.json"), now).alerts
    assert (alert.title, alert.status, alert.expires_at) == (
        "Only a drill",
        "firing",
        now + prometheus.RESOLVE_TIMEOUT,
    )
    assert alert.links == ({"href": "https://wiki.example.com/drill", "text": "Query in Prometheus"},)


def test_pagerduty_s_client_triggers_with_all_that_it_has() -> None:
    alert = sent("pagerduty/trigger")
    assert (alert.key, alert.title, alert.severity) == ("db-1/ping", "Ping of db-1 fails", "error")
    assert (alert.component, alert.group) == ("nic/db-1-0", "ping failure")
    assert alert.labels["probes[0].from"] == "mon-1"
    assert (len(alert.links), len(alert.images), alert.notes) == (1, 1, ())


@pytest.mark.parametrize(("name", "status"), [("acknowledge", "acknowledged"), ("resolve", "resolved")])
def test_pagerduty_s_client_acts_on_the_key_that_it_triggered(name: str, status: str) -> None:
    alert = sent(f"pagerduty/{name}")
    assert (alert.key, alert.status) == ("db-1/ping", status)


def test_pagerduty_s_client_may_leave_the_key_to_the_server() -> None:
    assert sent("pagerduty/trigger-without-key").key == "new"


def test_pagerduty_s_client_sends_changes() -> None:
    change = pagerduty.change(golden("pagerduty/change.json"))
    assert (change.summary, change.source, change.details) == (
        "Deploy 7 of shop",
        "ci.example.com",
        {"build": "7"},
    )
    assert change.at is not None
    assert change.links[0]["href"] == "https://ci.example.com/7"
