"""Requests of a client of Opsgenie's Alert API, as alerts."""

from __future__ import annotations

import json
from typing import Any

import pytest

from ingest.integrations.normalized import Alert, InvalidPayloadError
from ingest.integrations.opsgenie import acted, created, note_of, priority_of


def made(**fields: Any) -> Alert:
    return created(json.dumps({"message": "Disk is full", **fields}).encode(), "new")


def test_every_field_of_an_alert_has_its_place() -> None:
    alert = made(
        alias="disk/7",
        description="87 % and rising",
        responders=[{"type": "user", "username": "bob@example.com"}, {"type": "team", "name": "storage"}],
        tags=["prod", "disk"],
        details={"region": "eu-1", "log": "a\nb"},
        entity="db-7",
        source="https://probe.example.com/7",
        priority="p1",
        user="alice",
        note="seen in the rack",
    )
    assert (alert.key, alert.title, alert.severity, alert.component) == (
        "disk/7",
        "Disk is full",
        "critical",
        "host/db-7",
    )
    assert alert.description == "87 % and rising\n\nlog:\na\nb\n\nalice: seen in the rack"
    assert alert.labels == {
        "entity": "db-7",
        "priority": "P1",
        "region": "eu-1",
        "source": "https://probe.example.com/7",
        "tags": "prod, disk",
        "team": "storage",
        "user": "alice",
    }
    assert [link["href"] for link in alert.links] == ["https://probe.example.com/7"]


@pytest.mark.parametrize(
    ("fields", "component"),
    [
        ({"entity": "tor/t7"}, "tor/t7"),
        ({"entity": "Website"}, None),
        ({"entity": "Website", "details": {"host": "web-3"}}, "host/web-3"),
    ],
)
def test_an_entity_is_a_component_where_it_names_one(fields: dict[str, Any], component: str | None) -> None:
    assert made(**fields).component == component


@pytest.mark.parametrize(
    ("priority", "severity"),
    [(None, "warning"), ("P2", "error"), ("P3", "warning"), ("P4", "info"), ("P5", "info")],
)
def test_a_priority_is_a_severity_and_can_be_had_back(priority: str | None, severity: str) -> None:
    alert = made(priority=priority)
    assert (alert.severity, priority_of(alert)) == (severity, priority or "P3")


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"message": " "}, "message"),
        ({"priority": "high"}, "priority"),
        ({"alias": 7}, "alias"),
        ({"alias": "a" * 513}, "alias"),
    ],
)
def test_what_opsgenie_refuses_is_refused_with_the_field(fields: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidPayloadError) as refused:
        made(**fields)
    assert refused.value.field == field


def test_without_an_alias_each_alert_is_another() -> None:
    assert made().key == "new"


def test_an_action_keeps_the_alert_and_adds_its_note() -> None:
    alert = made(alias="a", description="full", priority="P2")
    closed = acted(b'{"user": "bob", "note": "replaced"}', alert, "resolved")
    assert (closed.status, closed.severity, closed.title) == ("resolved", "error", "Disk is full")
    assert closed.description == "full\n\nbob: replaced"
    assert acted(b"", alert, "acknowledged").status == "acknowledged"
    with pytest.raises(InvalidPayloadError):
        acted(b"[]", alert, "resolved")


def test_a_note_needs_a_text() -> None:
    assert note_of(b'{"note": "looked at it"}') == "looked at it"
    with pytest.raises(InvalidPayloadError):
        note_of(b'{"note": ""}')
