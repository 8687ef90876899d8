"""Fields of an event `alert.reported` that incidents read."""

from __future__ import annotations

import json
from typing import Any

import pytest

from incidents.domain.incident.alerts import reported_from
from tests.places import EVENTS

GOLDEN = EVENTS / "alert.reported.v1.json"
BODY: dict[str, Any] = json.loads(GOLDEN.read_text())


def described(**told: Any) -> str:
    return reported_from({**BODY, **told}).description


def test_an_event_from_before_there_were_annotations_is_read() -> None:
    old = {name: value for name, value in BODY.items() if name != "annotations"}
    assert reported_from(old).description == BODY["description"]


def test_an_incident_shows_annotations_that_nothing_else_shows() -> None:
    assert described() == "Writes take 900 ms.\n\nimpact: Backups of node-7 are late."


@pytest.mark.parametrize(
    "annotations",
    [
        None,
        {},
        {"empty": " "},
        {"summary": BODY["title"]},
        {"description": BODY["description"]},
        {"runbook_url": "https://books.example.com/disk"},
        {"__dashboardUid__": "abc"},
    ],
)
def test_an_incident_shows_no_annotation_twice(annotations: Any) -> None:
    assert described(annotations=annotations) == BODY["description"]
