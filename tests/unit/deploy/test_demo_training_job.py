"""The demo's training job: one job, whatever recorder tells of it, and one slow network card."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from io import BytesIO, StringIO

import numpy as np
import pytest

from analyzers.offline import choose_input, windows
from analyzers.registry import get
from analyzers.runner import judge
from deploy.demo import training_job
from deploy.demo.screen import Screen
from deploy.demo.sender import Sender
from deploy.demo.training_job import LEFT, PROBED, RANKS, UNTIL, Row, Training
from deploy.demo.witness import Witness
from deploy.demo.world import Demo
from ingest.telemetry.decode.columns import Rows
from ingest.telemetry.windows.offline import read_file
from tests.unit.deploy.test_demo_network import told

pytestmark = pytest.mark.simulated
START = datetime(2026, 1, 5, 8, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def job() -> Training:
    return Training(START, 7)


def test_every_recorder_names_components_of_the_one_topology(
    job: Training, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(training_job, "RECORDED", range(180, 181))
    known = {row["component"]: row for row in job.topology()}
    rows = {**Training(START, 7).minute(180), **job.minute(training_job.PROFILED[0])}
    assert {f"rank/{row['rank']}" for row in rows["collective"]} == {f"rank/{n}" for n in range(RANKS)}
    for row in rows["collective"][::97]:
        assert known[f"rank/{row['rank']}"]["parents"] == [row["node"]]
    assert {row["worker"] for row in rows["function_profile"]} <= known.keys()
    for end in job.minute(training_job.PROBED.start)["endpoint"]:
        rank = end["endpoint"].rpartition("-")[2]
        assert known[f"rank/{rank}"]["depends_on"] == [end["nic"]]
        assert known[end["nic"]]["parents"] == [end["host"]]
    assert {row["region"] for some in rows.values() for row in some} == {"gpu"}


def late(job: Training, number: int) -> set[str]:
    """The endpoints that all late probes of a minute have in common."""
    rows: list[Row] = job.minute(number)["probe"]
    slow = [row for row in rows if np.median(row["rtt_us"]) > 35]
    return set.intersection(*({row["src"], row["dst"]} for row in slow)) if slow else set()


def test_only_probes_of_the_slow_card_are_late_and_only_while_it_is_slow(job: Training) -> None:
    assert late(job, UNTIL - 1) == {training_job.endpoint(job.rank)}
    assert late(job, training_job.RECORDED.start - 1) == set()


@pytest.mark.parametrize(
    ("name", "kinds", "minutes", "every", "named"),
    [
        ("perftracker", ["function_profile"], (172, 183), 5, "worker/404"),
        ("c4d", ["collective"], range(181, 184), 1, "rank/404"),
        ("skeletonhunter", ["endpoint", "probe"], (PROBED.start, *range(175, 190)), 5, "nic/gpu-0050-4"),
    ],
)
def test_each_of_three_analyzers_names_its_part_of_the_slow_card(
    job: Training, name: str, kinds: list[str], minutes: Iterable[int], every: int, named: str
) -> None:
    sent = [job.minute(number) for number in minutes]
    tables = {kind: read(kind, [row for rows in sent for row in rows.get(kind, [])]) for kind in kinds}
    analyzer = get(name)
    *_, last = windows(analyzer, choose_input(analyzer, tables), tables, timedelta(minutes=every))
    (suspect,) = judge(analyzer, last, {})["suspects"]
    assert suspect["component"] == named
    assert named in {job.culprit, *job.also_named}


def read(kind: str, rows: list[Row]) -> Rows:
    return read_file(kind, "-", BytesIO("".join(json.dumps(row) + "\n" for row in rows).encode()))


def test_the_job_stands_still_until_its_node_is_back_and_ends_later(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(training_job, "RECORDED_AFTER", range(1))
    back, job = 230, Training(START, 7)
    for number in (UNTIL, back - 1, back):
        assert job.minute(number) == {}
    job.go_on(back, replaced=True)
    assert late(job, back) == set()
    ends = {number: job.minute(number).get("endpoint", []) for number in (back, back + 1, back + LEFT - 1)}
    assert [len(rows) for rows in ends.values()] == [RANKS, 0, RANKS]
    assert ["active" in rows[0] for rows in ends.values() if rows] == [False, True]
    assert job.minute(back + LEFT) == {}
    healthy = job.minute(back)["collective"]
    again = Training(START, 7)
    again.go_on(back, replaced=False)
    assert late(again, back) == {training_job.endpoint(job.rank)}
    assert again.minute(back)["collective"] != healthy, "operations wait for the slow card"


def test_an_incident_is_told_again_once_it_names_the_cause() -> None:
    out, demo = StringIO(), Demo(START)
    witness = Witness(Sender("http://localhost", "key", threading.Event()), Screen(out), demo)
    first = {**told(7, START), "component": demo.training.also_named[0]}
    for ticket in (first, first, {**first, "component": demo.training.culprit}):
        witness.look([ticket])
    said = [line for line in out.getvalue().splitlines() if "Incident" in line]
    assert ["not yet the cause" in line for line in said] == [True, False]
    assert f"until now {demo.training.also_named[0]} (right: " in said[1]
