"""Requests of clients of PagerDuty's Events API v2, and the answers to them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from ingest.integrations import pagerduty
from ingest.integrations.normalized import Alert, InvalidPayloadError

PAYLOAD = {"summary": "Disk is full", "source": "db-1.example.com", "severity": "critical"}


def body(**more: Any) -> bytes:
    told = {"routing_key": "r" * 32, "event_action": "trigger", "dedup_key": "k", "payload": PAYLOAD}
    return json.dumps({**told, **more}).encode()


def alert(**more: Any) -> Alert:
    return pagerduty.event(body(**more), "new").alert


def errors(**more: Any) -> list[str]:
    with pytest.raises(InvalidPayloadError) as refused:
        pagerduty.event(body(**more), "new")
    answer: list[str] = pagerduty.refusal(refused.value)["errors"]
    return answer


@pytest.mark.parametrize(
    ("action", "status"), [("trigger", "firing"), ("acknowledge", "acknowledged"), ("resolve", "resolved")]
)
def test_an_action_is_a_status_of_its_key(action: str, status: str) -> None:
    found = alert(event_action=action)
    assert (found.status, found.key) == (status, "k")


@pytest.mark.parametrize("key", [None, ""])
def test_a_trigger_without_a_key_gets_a_new_one(key: str | None) -> None:
    assert pagerduty.event(body(dedup_key=key), "new").dedup_key == "new"


@pytest.mark.parametrize("action", ["acknowledge", "resolve"])
def test_only_a_trigger_needs_a_payload(action: str) -> None:
    assert alert(event_action=action, payload=None).title == "k"


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"routing_key": ""}, "'routing_key' is missing or blank"),
        ({"routing_key": 7}, "'routing_key' is invalid (must be a string)"),
        ({"event_action": None}, "'event_action' is missing or blank"),
        (
            {"event_action": "page"},
            "'event_action' is invalid (must be one of the following: 'trigger', 'acknowledge' or 'resolve')",
        ),
        ({"event_action": "resolve", "dedup_key": ""}, "'dedup_key' is missing or blank"),
        ({"dedup_key": 7}, "'dedup_key' is invalid (must be a string)"),
        ({"payload": {**PAYLOAD, "summary": " "}}, "'payload.summary' is missing or blank"),
        ({"payload": {**PAYLOAD, "source": None}}, "'payload.source' is missing or blank"),
        ({"payload": "x"}, "'payload' is invalid (must be an object)"),
        (
            {"payload": {**PAYLOAD, "severity": "purple"}},
            "'payload.severity' is invalid (must be one of the following: 'critical', 'error', 'warning' or 'info')",
        ),
    ],
)
def test_an_event_that_breaks_a_rule_is_refused(more: dict[str, Any], error: str) -> None:
    assert errors(**more) == [error]


def test_everything_that_is_wrong_is_told_at_once() -> None:
    assert len(errors(routing_key="", payload={})) == 4


def test_a_body_that_is_no_json_has_the_same_form_of_answer() -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        pagerduty.event(b"{", "new")
    answer = pagerduty.refusal(refused.value)
    assert (answer["status"], answer["message"]) == ("invalid event", "Event object is invalid")
    assert answer["errors"][0].startswith("is not JSON")


def test_a_long_summary_is_shortened_and_says_so() -> None:
    found = alert(payload={**PAYLOAD, "summary": "x" * 5000})
    assert found.title.endswith("…")
    assert "the summary was shortened from 5000" in found.notes[0]


def test_a_key_of_the_longest_length_is_answered_as_it_was_sent() -> None:
    event = pagerduty.event(body(dedup_key="k" * 255), "new")
    assert event.dedup_key == "k" * 255
    assert event.alert.key == alert(dedup_key="k" * 255, event_action="resolve").key


@pytest.mark.parametrize(
    ("more", "error"),
    [
        ({"dedup_key": "k" * 256}, "'dedup_key' is too long (maximum is 255 characters)"),
        ({"payload": {**PAYLOAD, "severity": "fatal"}}, "'payload.severity' is invalid"),
    ],
)
def test_the_documented_bounds_hold(more: Any, error: str) -> None:
    assert errors(**more)[0].startswith(error)


def test_details_become_labels_by_their_path() -> None:
    details = {"disk": {"name": "sda", "full": 0.98}, "tags": ["a", "b"], "raid": False, "none": None}
    labels = alert(payload={**PAYLOAD, "class": "disk full", "custom_details": details}).labels
    assert labels == {
        "class": "disk full",
        "disk.full": "0.98",
        "disk.name": "sda",
        "raid": "false",
        "source": "db-1.example.com",
        "tags": "a, b",
    }


def test_long_details_are_described() -> None:
    found = alert(payload={**PAYLOAD, "custom_details": {"firing": "Labels:\n - a = b\n"}})
    assert found.description == "firing:\nLabels:\n - a = b"


def test_details_that_are_a_text_are_the_description() -> None:
    assert alert(payload={**PAYLOAD, "custom_details": "ping failed"}).description == "ping failed"


def test_the_class_of_an_event_is_what_storms_are_grouped_by() -> None:
    assert alert(payload={**PAYLOAD, "class": "ping failure", "group": "shop"}).group == "ping failure"


@pytest.mark.parametrize(
    ("payload", "component"),
    [
        ({"component": "disk/db-1-sda"}, "disk/db-1-sda"),
        ({"component": "mysql"}, "host/db-1.example.com"),
        ({"source": "tor/dc1-t7"}, "tor/dc1-t7"),
        ({"custom_details": {"node": "n7"}}, "node/n7"),
        ({"source": "Alertmanager"}, None),
        ({"source": "The web site"}, None),
        ({"source": "https://example.com/a"}, None),
    ],
)
def test_a_component_is_found_where_clients_write_it(payload: dict[str, Any], component: str | None) -> None:
    assert alert(payload={**PAYLOAD, **payload}).component == component


def test_a_source_that_is_the_client_is_no_host() -> None:
    assert alert(client="mon-1", payload={**PAYLOAD, "source": "mon-1"}).component is None


def test_links_images_and_the_client_are_shown() -> None:
    found = alert(
        links=[{"href": "https://a/b", "text": "Runbook"}, {"href": "javascript:x"}, 7],
        images=[{"src": "https://a/i.png", "alt": "Graph"}, {"src": "http://a/i.png"}],
        client="Monitor",
        client_url="https://mon/1",
    )
    assert [link["text"] for link in found.links] == ["Runbook", "Monitor"]
    assert found.images == ({"src": "https://a/i.png", "href": "", "alt": "Graph"},)
    assert len(found.notes) == 2


def test_repeats_of_a_trigger_are_one_firing() -> None:
    one, other = (alert(payload={**PAYLOAD, "timestamp": f"2026-01-31T12:00:0{n}Z"}) for n in (1, 2))
    assert one == other


def change(**payload: Any) -> pagerduty.Change:
    return pagerduty.change(json.dumps({"routing_key": "r", "payload": payload}).encode())


def test_a_change_has_its_time_and_details() -> None:
    found = change(
        summary="Deploy 7", source="ci", timestamp="2026-01-31T12:00:00.5+0000", custom_details={"build": 7}
    )
    assert found.at == datetime(2026, 1, 31, 12, 0, 0, 500_000, UTC)
    assert (found.summary, found.source, found.details) == ("Deploy 7", "ci", {"build": "7"})


def test_a_time_with_an_offset_and_a_z_is_read() -> None:
    assert change(summary="s", timestamp="2026-01-31T12:00:00+00:00Z").at == datetime(
        2026, 1, 31, 12, tzinfo=UTC
    )


def test_a_time_that_cannot_be_read_is_told_and_loses_nothing() -> None:
    found = change(summary="s", timestamp="yesterday")
    assert found.at is None
    assert "must be an RFC 3339 time" in found.notes[0]


@pytest.mark.parametrize(
    "told", [{"payload": {"summary": "s"}}, {"routing_key": "r"}, {"routing_key": "r", "payload": {}}]
)
def test_a_change_needs_a_key_and_a_summary(told: dict[str, Any]) -> None:
    with pytest.raises(pagerduty.InvalidEventError):
        pagerduty.change(json.dumps(told).encode())
