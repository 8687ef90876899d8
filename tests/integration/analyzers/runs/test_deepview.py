"""From rows at the door to an incident: Deepview on its default schedule."""

from __future__ import annotations

import random
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from analyzers.runs.models import Run, Schedule
from analyzers.runs.scheduler import claim_due
from incidents import follower, queries
from ingest.api import keys
from ingest.queries import read_stream
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, MINUTE, NOW, TOP, Door, work

pytestmark = pytest.mark.usefixtures("log_database")
UNITS, CLUSTERS = 1200, 6


def placed() -> list[dict[str, Any]]:
    """Units over six ToRs and six storage clusters, ten to a host."""
    return [
        {
            "time": TOP.isoformat(),
            "unit": f"vm/{unit}",
            "components": [
                f"tor/t{unit % CLUSTERS}",
                f"storage_cluster/s{unit // CLUSTERS % CLUSTERS}",
                f"host/h{unit // 10}",
            ],
        }
        for unit in range(UNITS)
    ]


def failures(hour: int, sick: str = "") -> list[dict[str, Any]]:
    """An hour in which one unit in two hundred fails, and of those on the sick component one in three."""
    rng = random.Random(hour)
    rows = []
    for one in placed():
        if rng.random() < (1 / 3 if sick in one["components"] else 1 / 200):
            at = TOP + hour * HOUR + rng.random() * 59 * MINUTE
            rows.append({"time": at.isoformat(), "unit": one["unit"], "symptom": "disk_timeout"})
    return rows


def hourly() -> Schedule:
    """The schedule of a new installation, on the hour so that the test does few runs."""
    Schedule.objects.exclude(name="deepview-1h").delete()
    Schedule.objects.update(every=HOUR, by_arrival=False)
    return Schedule.objects.get()


def run_all(schedule: Schedule) -> list[Run]:
    done: list[Run] = []
    while claim_due([schedule], NOW):
        done += work()
    return done


def marked_in_the_grid() -> list[list[tuple[str, str]]]:
    """Of each of the two hours what the grid marks, and whether an incident or a run blames it."""
    key = keys.create("reader", ["incidents:read"])
    asked = {"rows": "tor", "columns": "storage_cluster", "steps": "2", "end": (TOP + 2 * HOUR).isoformat()}
    told = Client(headers={"Authorization": f"Bearer {key}"}).get("/api/v1/grid", asked).json()
    return [[(one["component"], one["by"]) for one in step] for step in told["marks"]]


def test_a_storage_cluster_that_fails_is_a_ticket_of_its_team_and_a_mark_in_the_grid() -> None:
    door = Door(keep_schedules=True)
    schedule = hourly()
    door.post(placed(), kind="placement")
    beginning = [{"time": TOP.isoformat(), "unit": "vm/0"}]
    door.post([*beginning, *failures(0), *failures(1, sick="storage_cluster/s4")], kind="unit_failure")
    door.post(
        [{"time": (TOP + 2 * HOUR + timedelta(minutes=2)).isoformat(), "unit": "vm/1"}], kind="unit_failure"
    )
    healthy, faulty = run_all(schedule)
    assert (healthy.status, faulty.status) == ("quiet", "named")
    assert [one["component"] for one in faulty.blamed] == ["storage_cluster/s4"]
    assert [event.type for event in read_stream(faulty.stream)] == ["analysis.recorded", "finding.reported"]

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert (ticket.incident.component, ticket.incident.team) == ("storage_cluster/s4", "storage")
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart"}
    assert marked_in_the_grid() == [[], [("storage_cluster/s4", "incident"), ("storage_cluster/s4", "run")]]
