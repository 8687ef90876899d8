"""Webhooks of hosted monitoring systems, as they document them, read without a mapping: recognised, fired, resolved."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingest.integrations import recognition
from ingest.integrations.generic import apply
from ingest.integrations.generic.presets import HOSTED
from ingest.integrations.normalized import Alert
from tests.places import PAYLOADS

WITHOUT_END = {"splunk", "graylog", "wazuh", "opsgenie-alert"}
NAMES = [ready.name for ready in HOSTED]
PAIRS = [
    *((name, "firing", "resolved") for name in NAMES if name not in WITHOUT_END),
    ("datadog", "custom-firing", "custom-resolved"),
    ("cloudwatch", "raw-firing", "raw-resolved"),
    ("sentry", "metric-firing", "metric-resolved"),
    ("github", "alert-firing", "alert-resolved"),
    ("gitlab", "job-firing", "job-resolved"),
    ("checkmk", "host-firing", "host-resolved"),
    ("healthchecks", "firing", "resolved"),
]
LEFT_OUT = [
    ("uptime-kuma", "pending", "pending check"),
    ("cloudwatch", "insufficient-data", "the alarm has insufficient data"),
    ("cloudwatch", "confirmation", "a subscription to confirm"),
    ("github", "push", "an event without a failure or its end"),
    ("gitlab", "push", "an event without a failure or its end"),
]
THIRTY = [
    ("datadog", "firing", "fires", "resolves"),
    ("datadog", "custom-firing", "fires", "resolves"),
    ("netdata", "firing", "fires", "resolves"),
    ("newrelic", "firing", "fires", "resolves"),
    ("healthchecks", "firing", "fires", "resolves"),
    ("opsgenie-alert", "firing", "fires", ""),
    ("slack", "text", "fires", ""),
    ("proxmox", "firing", "fires", "resolves"),
    ("cloudwatch", "firing", "fires", "resolves"),
    ("cloudwatch", "raw-firing", "fires", "resolves"),
    ("azure", "firing", "fires", "resolves"),
    ("google", "firing", "fires", "resolves"),
    ("dynatrace", "firing", "fires", "resolves"),
    ("uptime-kuma", "firing", "fires", "resolves"),
    ("sentry", "firing", "fires", "resolves"),
    ("sentry", "metric-firing", "fires", "resolves"),
    ("pingdom", "firing", "fires", "resolves"),
    ("uptimerobot", "firing", "fires", "resolves"),
    ("splunk", "firing", "fires", ""),
    ("graylog", "firing", "fires", ""),
    ("elastic", "firing", "fires", "resolves"),
    ("checkmk", "firing", "fires", "resolves"),
    ("github", "firing", "fires", "resolves"),
    ("gitlab", "firing", "fires", "resolves"),
    ("statuspage", "firing", "fires", "resolves"),
    ("discord", "firing", "fires", "resolves"),
    ("wazuh", "firing", "fires", ""),
    ("opsgenie", "firing", "fires", "resolves"),
    ("cloudwatch", "confirmation", "left out", ""),
    ("cloudwatch", "insufficient-data", "left out", ""),
]
"""Vendors' payloads and what they do: by sender and name what the payload does, and what its recovery does (empty for a
sender without one)."""


def payload(sender: str, name: str) -> Any:
    return json.loads((PAYLOADS / sender / f"{name}.json").read_text())


def read(told: Any) -> Alert:
    preview = apply.apply(recognition.reads(told), told)
    (item,) = preview.items
    assert item.alert is not None, item
    return item.alert


def outcome(told: Any) -> str:
    (item,) = apply.apply(recognition.reads(told), told).items
    if item.alert is None:
        return "left out" if item.ignored else "refused"
    return {"firing": "fires", "resolved": "resolves"}.get(item.alert.status, item.alert.status)


@pytest.mark.parametrize(("sender", "name", "does", "recovery"), THIRTY)
def test_each_of_thirty_vendors_payloads_is_read(sender: str, name: str, does: str, recovery: str) -> None:
    assert outcome(payload(sender, name)) == does
    if recovery:
        assert outcome(payload(sender, name.replace("firing", "resolved"))) == recovery


@pytest.mark.parametrize(("sender", "name", "why"), LEFT_OUT)
def test_what_a_mapping_leaves_out_has_a_reason(sender: str, name: str, why: str) -> None:
    told = payload(sender, name)
    (item,) = apply.apply(recognition.reads(told), told).items
    assert item.ignored == why


@pytest.mark.parametrize("sender", NAMES)
def test_a_payload_is_recognised_as_its_sender_s(sender: str) -> None:
    found = recognition.recognised(payload(sender, "firing"))
    assert found is not None
    assert found.name == sender


@pytest.mark.parametrize(("sender", "fires", "ends"), PAIRS)
def test_a_recovery_ends_the_alert_that_fired(sender: str, fires: str, ends: str) -> None:
    firing, resolved = read(payload(sender, fires)), read(payload(sender, ends))
    assert (firing.status, resolved.status) == ("firing", "resolved")
    assert firing.key == resolved.key
    assert firing.title
    assert firing.notes == resolved.notes == ()


@pytest.mark.parametrize("sender", sorted(WITHOUT_END))
def test_a_sender_without_recoveries_fires(sender: str) -> None:
    assert read(payload(sender, "firing")).status == "firing"


@pytest.mark.parametrize(
    ("sender", "name", "title", "severity", "component"),
    [
        ("datadog", "firing", "CPU is high on web-1", "error", None),
        ("datadog", "custom-firing", "CPU is high on web-1", "critical", "host/web-1"),
        ("cloudwatch", "firing", "db-1 CPU", "error", None),
        ("azure", "firing", "CPU of vm-1", "error", "host/vm-1"),
        ("google", "firing", "CPU utilisation on vm-1", "critical", None),
        ("newrelic", "firing", "Memory Used % > 90 for at least 2 minutes on 'checkout'", "critical", None),
        ("dynatrace", "firing", "Failure rate increase: checkout", "error", None),
        ("sentry", "firing", "ZeroDivisionError: division by zero", "error", "service/shop"),
        ("uptime-kuma", "firing", "shop: connect ECONNREFUSED", "critical", "service/shop"),
        ("netdata", "firing", "ram_usage on db-1", "critical", "host/db-1"),
        ("jira", "firing", "OPS-7: Checkout is slow", "critical", "service/checkout"),
        ("github", "firing", "CI fails on main of example/checkout", "error", "service/checkout"),
        (
            "github",
            "alert-firing",
            "Insertion of Sensitive Information into Log File in ansible in example/checkout",
            "warning",
            "service/checkout",
        ),
        ("gitlab", "firing", "Pipeline fails on main of shop/checkout", "error", "service/Checkout"),
        ("checkmk", "firing", "Filesystem /var on db-1 is CRITICAL", "critical", "host/db-1"),
        ("checkmk", "host-firing", "db-1 is DOWN", "critical", "host/db-1"),
        ("proxmox", "firing", "vzdump backup status (pve1): backup failed", "error", "host/pve1"),
        ("discord", "firing", "❌ Your service shop went down. ❌", "error", None),
        ("slack", "firing", "DiskFull db-1", "warning", None),
        ("opsgenie-alert", "firing", "Disk of db-1 is full", "critical", "host/db-1"),
    ],
)
def test_an_alert_has_what_an_incident_shows(
    sender: str, name: str, title: str, severity: str, component: str | None
) -> None:
    alert = read(payload(sender, name))
    assert (alert.title, alert.severity, alert.component) == (title, severity, component)


def test_two_hosts_of_a_monitor_are_two_alerts() -> None:
    one = payload("datadog", "firing")
    other = {**one, "title": "[Triggered on {host:web-2}] CPU is high on web-1"}
    assert read(one).key != read(other).key


@pytest.mark.parametrize(
    ("payload", "status", "title", "key"),
    [
        ({"title": "[Recovered on {host:a}] CPU"}, "resolved", "CPU", "CPU on {host:a}"),
        ({"title": "[OK] Disk d7"}, "resolved", "Disk d7", "Disk d7"),
        ({"title": "[Alerting] Disk d7"}, "firing", "Disk d7", "Disk d7"),
        ({"title": "ram_usage recovered", "key": "k"}, "resolved", "ram_usage", "k"),
        ({"title": "RESOLVED: Disk d7"}, "resolved", "Disk d7", "Disk d7"),
        ({"title": "ram_usage", "severity": "clear"}, "resolved", "ram_usage", "ram_usage"),
        (
            {"title": "db-1 could not be resolved"},
            "firing",
            "db-1 could not be resolved",
            "db-1 could not be resolved",
        ),
        ({"title": "x", "alert_transition": "Recovered"}, "resolved", "x", "x"),
        ({"title": "x", "status": "alert.resolved"}, "resolved", "x", "x"),
    ],
)
def test_a_recovery_is_known_by_its_words(payload: Any, status: str, title: str, key: str) -> None:
    alert = read(payload)
    assert (alert.status, alert.title, alert.key) == (status, title, key)


def test_an_unknown_status_fires_and_is_shown_as_received() -> None:
    alert = read({"title": "x", "status": "Behoben"})
    assert (alert.status, alert.labels["status"]) == ("firing", "Behoben")
    assert "'behoben'" in alert.notes[0].lower()


@pytest.mark.parametrize(
    "told",
    [
        {"event": {"headline": "Disk is full", "uuid": "7", "state": "open"}},
        {"alarms": [{"msg": "Disk is full", "id": 7}]},
        [{"what": "Disk is full"}],
    ],
)
def test_a_proposed_mapping_reads_the_payload_it_is_proposed_for(told: Any) -> None:
    how = apply.mapping(recognition.proposed(told))
    (item,) = apply.apply(how, told).items
    assert item.alert is not None, item
    assert item.alert.title == "Disk is full"


def test_a_proposed_mapping_reads_the_recovery_of_a_title_without_a_status() -> None:
    how = apply.mapping(recognition.proposed({"event": {"headline": "[DOWN] Disk d7", "host": "a"}}))
    (item,) = apply.apply(how, {"event": {"headline": "[OK] Disk d7", "host": "a"}}).items
    assert item.alert is not None, item
    assert (item.alert.status, item.alert.key) == ("resolved", "Disk d7")


def test_only_an_address_of_amazon_confirms_a_subscription() -> None:
    told = payload("cloudwatch", "confirmation")
    assert recognition.confirmation(told) == told["SubscribeURL"]
    for address in (
        "http://sns.eu-west-1.amazonaws.com/",
        "https://sns.example.com/",
        "https://10.0.0.1/",
        7,
    ):
        assert recognition.confirmation({**told, "SubscribeURL": address}) is None
    (item,) = apply.apply(recognition.reads(told), told).items
    assert item.ignored
