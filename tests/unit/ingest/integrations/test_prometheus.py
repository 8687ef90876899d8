"""Bodies of Prometheus and Alertmanager, and which of it is taken."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ingest.integrations import prometheus
from ingest.integrations.normalized import Alert, InvalidPayloadError
from ingest.integrations.prometheus import fingerprint

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
LABELS = {"alertname": "DiskFull", "instance": "db-1:9100", "severity": "critical"}


def posted(*items: Any) -> list[Alert]:
    parsed = prometheus.alerts(json.dumps(items).encode(), NOW)
    assert parsed.refused == ()
    return list(parsed.alerts)


def refusal(item: Any) -> str:
    [refused] = prometheus.alerts(json.dumps([item]).encode(), NOW).refused
    return str(refused)


def message(*items: Any, **more: Any) -> bytes:
    return json.dumps({"version": "4", "status": "firing", "alerts": items, **more}).encode()


def member(**more: Any) -> dict[str, Any]:
    return {"status": "firing", "labels": LABELS, **more}


def test_no_labels_have_the_offset_of_fnv_as_fingerprint() -> None:
    assert fingerprint({}) == "cbf29ce484222325"


def test_a_fingerprint_is_fnv_1a_over_sorted_labels() -> None:
    digest = 0xCBF29CE484222325
    for byte in b"a\xff" + "ü".encode() + b"\xffb\xff1\xff":
        digest = (digest ^ byte) * 0x100000001B3 % 2**64
    assert fingerprint({"b": "1", "a": "ü"}) == f"{digest:016x}"


def test_an_alert_is_named_by_its_annotations_and_grouped_by_its_rule() -> None:
    [alert] = posted({"labels": LABELS, "annotations": {"summary": "Disk of db-1 is full"}})
    assert (alert.title, alert.group, alert.severity) == ("Disk of db-1 is full", "DiskFull", "critical")
    assert (alert.component, alert.key) == ("host/db-1", fingerprint(LABELS))


@pytest.mark.parametrize(
    ("annotations", "title"),
    [
        ({"title": "T", "description": "D"}, "T"),
        ({"description": "First line\nsecond"}, "First line"),
        ({}, "DiskFull on db-1:9100"),
    ],
)
def test_a_title_is_found_in_every_alert(annotations: dict[str, str], title: str) -> None:
    assert posted({"labels": LABELS, "annotations": annotations})[0].title == title


def test_annotations_are_kept_as_sent_and_beside_the_description() -> None:
    sent = {"summary": "s", "description": "d", "impact": "shop is down ", "empty": "", "k": "two  spaces"}
    [alert] = posted({"labels": LABELS, "annotations": sent})
    assert alert.annotations == sent
    assert alert.description == "d"


def test_an_annotation_that_cannot_be_kept_as_sent_has_a_note() -> None:
    [alert] = posted({"labels": LABELS, "annotations": {"nul": "a\0b", "long": "x" * 20_000}})
    assert alert.annotations is not None
    assert alert.annotations["nul"] == "a\ufffdb"
    assert len(alert.annotations["long"]) == 10_000
    assert "annotation long was shortened" in alert.notes[0]


def test_addresses_of_an_alert_become_links() -> None:
    annotations = {"runbook_url": "https://runbooks.example.com/disk"}
    [alert] = posted(
        {"labels": LABELS, "annotations": annotations, "generatorURL": "http://prometheus:9090/graph"}
    )
    assert [link["text"] for link in alert.links] == ["Query in Prometheus", "Runbook"]


def test_labels_without_a_value_are_no_labels() -> None:
    [alert] = posted({"labels": {**LABELS, "pod": ""}})
    assert alert.key == fingerprint(LABELS)
    assert "pod" not in alert.labels


def test_an_alert_without_an_end_fires_for_five_minutes() -> None:
    [alert] = posted({"labels": LABELS, "startsAt": "2026-01-31T11:00:00Z"})
    assert alert.status == "firing"
    assert alert.expires_at == NOW + timedelta(minutes=5)
    assert alert.starts_at == NOW - timedelta(hours=1)


def test_an_alert_fires_until_its_end() -> None:
    [alert] = posted({"labels": LABELS, "endsAt": "2026-01-31T12:03:00Z"})
    assert (alert.status, alert.expires_at) == ("firing", NOW + timedelta(minutes=3))


def test_an_end_that_has_passed_means_resolved() -> None:
    [alert] = posted({"labels": LABELS, "startsAt": "2026-01-31T11:00:00Z", "endsAt": "2026-01-31T12:00:00Z"})
    assert (alert.status, alert.expires_at) == ("resolved", None)


def test_a_start_that_nobody_sent_is_not_made_up() -> None:
    assert posted({"labels": LABELS})[0].starts_at is None


@pytest.mark.parametrize(
    ("item", "reason"),
    [
        ({"labels": {}}, "at least one label pair required"),
        ({"labels": {"a": ""}}, "at least one label pair required"),
        ({"annotations": {}}, "at least one label pair required"),
        ({"labels": {"": "x"}}, "invalid label set"),
        ({"labels": {"a": 1}}, "must be a text, not a number"),
        ({"labels": ["a"]}, "must be an object of texts, not an array"),
        ({"labels": LABELS, "annotations": "x"}, "annotations: must be an object of texts"),
        ({"labels": LABELS, "startsAt": "soon"}, "startsAt: must be an RFC 3339 time"),
        (
            {"labels": LABELS, "startsAt": "2026-01-31T11:00:00Z", "endsAt": "2026-01-31T10:00:00Z"},
            "start time must be before end time",
        ),
        ("x", "must be an object with labels, not a text"),
    ],
)
def test_an_alert_without_meaning_is_refused_with_its_reason(item: Any, reason: str) -> None:
    assert reason in refusal(item)


def test_good_alerts_are_taken_beside_bad_ones() -> None:
    parsed = prometheus.alerts(json.dumps([{"labels": {}}, {"labels": LABELS}]).encode(), NOW)
    assert (len(parsed.alerts), parsed.refused[0].place) == (1, 0)


@pytest.mark.parametrize("body", [b"", b"{}", b"null", b"[", b'[{"labels": NaN}]', b"\xff"])
def test_a_body_that_is_no_array_is_refused_whole(body: bytes) -> None:
    with pytest.raises(InvalidPayloadError):
        prometheus.alerts(body, NOW)


def test_each_alert_of_a_message_has_its_own_status() -> None:
    body = message(member(), member(status="resolved", labels={"alertname": "Other"}))
    assert [alert.status for alert in prometheus.webhook(body).alerts] == ["firing", "resolved"]


def test_a_delivered_alert_fires_until_it_is_delivered_as_resolved() -> None:
    body = message(member(startsAt="2026-01-31T11:00:00Z", endsAt="2026-01-31T11:04:00Z"))
    [alert] = prometheus.webhook(body).alerts
    assert (alert.status, alert.expires_at) == ("firing", None)


def test_alerts_that_alertmanager_left_out_are_told() -> None:
    [alert] = prometheus.webhook(message(member(), truncatedAlerts=7)).alerts
    assert alert.notes == ("7 more alerts of this group were left out by the sender (max_alerts)",)


def test_a_delivered_alert_can_be_silenced_where_it_came_from() -> None:
    [alert] = prometheus.webhook(message(member(), externalURL="http://am:9093")).alerts
    assert alert.links[-1]["text"] == "Silence in Alertmanager"
    assert alert.links[-1]["href"].startswith(
        "http://am:9093/#/silences/new?filter=%7Balertname%3D%22DiskFull%22%2C%20instance"
    )


def test_a_group_is_no_identity_of_its_alerts() -> None:
    one, other = (prometheus.webhook(message(member(), groupKey=key)).alerts for key in ("{}:{a}", "{}:{b}"))
    assert one == other


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (message(member(), version="3"), 'version: must be "4"'),
        (message(member(), version="1"), "version"),
        (b'{"text": "my own template"}', "without `payload`"),
        (b'{"version": "4", "alerts": {}}', "alerts: must be an array"),
        (b"[]", "must be a JSON object, not an array"),
    ],
)
def test_a_message_of_another_form_is_refused_with_the_reason(body: bytes, reason: str) -> None:
    with pytest.raises(InvalidPayloadError, match=reason):
        prometheus.webhook(body)


def test_a_member_without_a_status_is_refused() -> None:
    [refused] = prometheus.webhook(message(member(status="pending"))).refused
    assert str(refused) == 'alert 0: status: must be "firing" or "resolved", not \'pending\''
