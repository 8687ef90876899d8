"""Past incidents that are like one, over the API and beside its page, and the team that resolved such ones."""

from __future__ import annotations

import itertools
import random
import time
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from frontend.templatetags.dossier import whole_minutes
from incidents import commands, queries
from incidents.commands import Report
from incidents.incident.models import IncidentRow
from ingest.api import keys
from ingest.queries import Context, watermark

ALICE = Context("user:alice")
_READERS = itertools.count()
pytestmark = pytest.mark.usefixtures("log_database")


def opened(title: str, component: str | None = None) -> str:
    return commands.open_incident(Report(title, component), ALICE).incident.id


def resolved(title: str, component: str, cause: str | None = None) -> None:
    commands.resolve(opened(title, component), cause or component, "", ALICE)


def asked(number: int = 1, **parameters: Any) -> Any:
    key = keys.create(f"reader {next(_READERS)}", ["incidents:read"])
    client = Client(headers={"Authorization": f"Bearer {key}"})
    return client.get(f"/api/v1/incidents/{number}/similar", parameters)


def test_tickets_that_were_resolved_say_how() -> None:
    opened("Disk d7 of s7 is slow", "storage_cluster/s7")
    resolved("Disk d3 of s9 is slow", "storage_cluster/s9", "tor/t3")
    resolved("Fans are loud", "host/h1", "none")
    answer = asked().json()
    (found,) = answer["results"]
    assert (found["number"], found["confirmed_cause"], found["team"]) == (2, "tor/t3", "storage")
    assert 0.1 < found["similarity"] < 1
    assert found["seconds_to_resolve"] >= 0


def test_what_was_resolved_later_was_not_known_then() -> None:
    opened("Disk d7 of s7 is slow", "storage_cluster/s7")
    resolved("Disk d3 of s9 is slow", "storage_cluster/s9", "tor/t3")
    then = str(watermark())
    resolved("Disk d5 of s8 is slow", "storage_cluster/s8")
    commands.set_title(queries.get("2").incident.id, "Disk d3 of s9 is slow again", ALICE)
    (found,) = asked(as_of=then).json()["results"]
    assert (found["number"], found["title"]) == (2, "Disk d3 of s9 is slow")
    assert asked(as_of=then).json()["suggested_team"] is None


def test_open_tickets_are_no_past_ones() -> None:
    opened("Disk is slow")
    opened("Disk is slow")
    assert asked().json()["results"] == []


def test_a_ticket_is_not_like_itself() -> None:
    resolved("Disk is slow", "host/h1")
    assert asked().json()["results"] == []


def test_what_is_resolved_meanwhile_is_found() -> None:
    opened("Disk is slow", "host/h1")
    assert asked().json()["results"] == []
    resolved("Disk is slow", "host/h1")
    found: list[Any] = []
    # The model is kept for twenty times as long as it took to make.
    until = time.monotonic() + 60
    while not found and time.monotonic() < until:
        found = asked(limit=3).json()["results"]
    assert [one["number"] for one in found] == [2]


def test_too_short_a_past_suggests_no_team_and_says_so() -> None:
    opened("Disk is slow", "host/h1")
    answer = asked().json()
    told = answer["suggested_team"]
    assert (told["team"], told["probability"]) == (None, None)
    assert "too little to learn from" in told["why"]
    assert answer["time_to_mitigate"]["seconds"] is None
    assert answer["time_to_mitigate"]["why"].startswith("too few past incidents: 0 are resolved")


def test_the_time_to_mitigate_is_learned_from_resolved_incidents() -> None:
    opened("Disk d7 is slow", "host/h1")
    resolved("Disk d8 is slow", "host/h2")
    row, draw = IncidentRow.objects.get(number=2), random.Random(3)
    for n in range(3, 153):
        row.pk, row.number, row.dedup_key = uuid4(), n, str(n)
        row.opened_at -= timedelta(hours=2)
        row.resolved_at = row.opened_at + timedelta(minutes=draw.uniform(20, 60))
        row.save(force_insert=True)
    found = asked().json()["time_to_mitigate"]
    low, median, high = (found["seconds"][level] for level in ("0.1", "0.5", "0.9"))
    assert 1200 <= low < median < high <= 3600
    assert found["record"]["judged"] > 30
    assert 0.6 < found["record"]["coverage"] < 0.95
    assert asked(as_of=str(watermark())).json()["time_to_mitigate"] is None
    assert asked(2).json()["time_to_mitigate"] is None
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    body = client.get("/incidents/1/similar").content.decode()
    assert f"<strong data-median>{whole_minutes(median)}</strong> from the opening" in body
    assert "incidents ended in their range" in body


@pytest.mark.parametrize("limit", ["0", "51", "x", "-1", "9" * 40])
def test_a_limit_that_cannot_be_is_refused(limit: str) -> None:
    opened("Disk is slow")
    assert asked(limit=limit).status_code == 400


def test_a_ticket_that_there_is_not_is_not_found() -> None:
    assert asked(7).status_code == 404


def test_the_page_beside_a_ticket_shows_both() -> None:
    opened("Disk d7 is slow", "host/h1")
    resolved("Disk d8 is slow", "host/h2", "none")
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    body = client.get("/incidents/1/similar").content.decode()
    assert "#2 Disk d8 is slow" in body
    assert "false alarm" in body
    assert "No prediction: too little to learn from" in body
    assert 'hx-get="/incidents/1/similar"' in client.get("/incidents/1").content.decode()


def test_similar_incidents_are_one_line_a_component_those_of_the_same_kind_first() -> None:
    opened("12 % of what runs on it fails", "compute_cluster/c7")
    for _ in range(3):
        resolved("12 % of what runs on it fails", "storage_cluster/s5")
    resolved("12 % of what runs there fails", "compute_cluster/c2")
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice"))
    found = client.get("/incidents/1/similar").context["similar"]
    assert [(one.component, len(one.incidents)) for one in found] == [
        ("compute_cluster/c2", 1),
        ("storage_cluster/s5", 3),
    ]
    assert found[1].latest.incident.number == 4
