"""From benchmark results at the door to an incident: one gray node of forty."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from datetime import datetime, timedelta

import numpy as np
import pytest

from analyzers.runs.requests import RunRequest, request_run
from analyzers.simulators.node_benchmarks import METRICS, Defect, Preset, build, results, rows_of, taken_at
from incidents import follower, queries
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import HOUR, NOW, TOP, Door, work
from tests.integration.incidents.alerts.test_correlate import alert, send
from tests.worlds import Row
from tests.worlds.validator import DAYS, HISTORY, START, make

DAY = timedelta(days=1)

pytestmark = pytest.mark.usefixtures("log_database")


def test_a_gray_node_becomes_a_ticket_with_its_evidence() -> None:
    rng = np.random.default_rng(1)
    fleet = build(Preset(nodes=40, runs=8, metrics=METRICS[:2]), rng)
    door = Door()
    door.post(rows_of(fleet, results(fleet, rng, [Defect(7, (0,), 0.1)]), TOP), kind="benchmark")
    request_run(RunRequest("validator", start=TOP, end=TOP + HOUR), "alice", NOW)
    (run,) = work()
    assert (run.status, [one["component"] for one in run.blamed]) == ("named", ["node/gpu-0007"])
    assert run.window_end - run.window_start == timedelta(hours=1)

    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == "node/gpu-0007"
    assert " than the fleet in " in (ticket.incident.verdict or "")
    assert {piece.kind for piece in queries.evidence(ticket.incident.id)} >= {"table", "chart"}


def test_a_node_that_was_repaired_failed_until_its_last_bad_round() -> None:
    rng = np.random.default_rng(1)
    fleet = build(Preset(nodes=40, runs=8, metrics=METRICS[:2]), rng)
    door = Door()
    for at, severity in ((TOP, 0.2), (TOP + HOUR, 0.2), (TOP + 2 * HOUR, 0.0)):
        sick = [Defect(7, (0,), severity)] if severity else []
        door.post(rows_of(fleet, results(fleet, rng, sick), at), kind="benchmark")
    request_run(RunRequest("validator", start=TOP, end=TOP + 3 * HOUR), "alice", NOW + 3 * HOUR)
    work()
    follow_to_the_end(follower.follower())
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.last_failure == taken_at(TOP + HOUR, 7)


def hot_aisle(door: Door) -> Iterator[datetime]:
    """Send a fleet of 64 nodes in four aisles, of which one is 5 % worse from the fourth day on; where each such day
    begins. Rows are of the second generator, its days ending at `TOP`.
    """
    world = make(21, "hot_aisle")
    shift = TOP - DAYS * DAY - START
    door.post([moved(row, shift) for row in world.rows["topology"]], kind="topology")
    by_day: dict[int, list[Row]] = defaultdict(list)
    for row in world.rows["benchmark"]:
        by_day[(datetime.fromisoformat(row["time"]) - START).days].append(moved(row, shift))
    for day in range(DAYS):
        door.post(by_day[day], kind="benchmark")
        if day >= HISTORY:
            yield START + shift + day * DAY


def moved(row: Row, shift: timedelta) -> Row:
    return {**row, "time": (datetime.fromisoformat(row["time"]) + shift).isoformat()}


def test_a_hot_aisle_is_one_incident_of_the_aisle_with_its_nodes_as_evidence() -> None:
    for start in hot_aisle(Door()):
        request_run(RunRequest("validator", start=start, end=start + DAY), "alice", NOW)
        (run,) = work()
        follow_to_the_end(follower.follower())
    (fault,) = make(21, "hot_aisle").faults
    (ticket,) = queries.list_incidents().items
    aisle = fault.acceptable[-1]
    assert ticket.incident.component == aisle
    assert [suspect["component"] for suspect in run.blamed] == [aisle]
    titled = [
        one for one in queries.evidence(ticket.incident.id) if one.title == "Nodes that became worse together"
    ]
    assert titled
    for piece in titled:
        assert {str(row[0]) for row in piece.rows} == {fault.component, *fault.acceptable[:-1]}


def test_alerts_on_nodes_of_a_hot_aisle_join_its_incident() -> None:
    for start in hot_aisle(Door()):
        request_run(RunRequest("validator", start=start, end=start + DAY), "alice", NOW)
        work()
    follow_to_the_end(follower.follower())
    (fault,) = make(21, "hot_aisle").faults
    for node in (fault.component, *fault.acceptable[:3]):
        send(alert(f"slow {node}", group="StepTimeHigh", component=node))
    (ticket,) = queries.list_incidents().items
    assert ticket.incident.component == fault.acceptable[-1]
    assert ticket.incident.firing == 4
