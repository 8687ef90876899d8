"""The demo's training job: one job, whatever recorder tells of it, and one slow network card."""

from __future__ import annotations

import threading
from datetime import UTC, datetime
from io import StringIO

import numpy as np
import pytest

from deploy.demo import training_job
from deploy.demo.screen import Screen
from deploy.demo.sender import Sender
from deploy.demo.training_job import BACK, RANKS, SINCE, UNTIL, Row, Training
from deploy.demo.witness import Witness
from deploy.demo.world import Demo
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


def test_only_probes_of_the_slow_card_are_late_and_only_while_it_is_slow(job: Training) -> None:
    def late(number: int) -> set[str]:
        rows: list[Row] = job.minute(number)["probe"]
        slow = [row for row in rows if np.median(row["rtt_us"]) > 35]
        return set.intersection(*({row["src"], row["dst"]} for row in slow)) if slow else set()

    culprit = training_job.endpoint(job.rank)
    assert late(SINCE) == {culprit}
    assert late(SINCE - 1) == late(BACK) == set()


def test_the_job_sends_nothing_between_the_drain_and_the_return(job: Training) -> None:
    for number in (UNTIL + 1, BACK - 1, training_job.PROBED.stop):
        assert job.minute(number) == {}


def test_an_incident_is_told_again_once_it_names_the_cause() -> None:
    out, demo = StringIO(), Demo(START)
    witness = Witness(Sender("http://localhost", "key", threading.Event()), Screen(out), demo)
    first = {**told(7, START), "component": demo.training.also_named[0]}
    for ticket in (first, first, {**first, "component": demo.training.culprit}):
        witness.look([ticket])
    said = [line for line in out.getvalue().splitlines() if "Incident" in line]
    assert ["not yet the cause" in line for line in said] == [True, False]
    assert f"until now {demo.training.also_named[0]} (right: " in said[1]
