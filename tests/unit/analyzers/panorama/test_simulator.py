"""Simulated observers: the faults do what they say, and windows cut directly are those of the rows."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.panorama import ANALYZER
from analyzers.simulators import observers as sim
from analyzers.simulators.observations import EPOCH, observation_rows, observation_scenario, window_of
from ingest.telemetry.windows import offline
from tests.unit.analyzers.availability.test_simulators import rows_of
from tests.unit.analyzers.panorama.cases import TINY, simulated
from tests.unit.analyzers.simulators.test_scenarios import decoded

pytestmark = pytest.mark.simulated

ONSET = 10.0


def failing(reports: sim.Reports, chosen: Any, since: float = ONSET + 1, until: float = 24.0) -> float:
    """Share of unhealthy answers among the chosen cells after the onset."""
    rows = (
        chosen[reports.cell]
        & (reports.time >= since)
        & (reports.time < until)
        & (reports.status != sim.PENDING)
    )
    return float(np.mean(reports.status[rows] == sim.UNHEALTHY)) if rows.any() else 0.0


def test_windows_cut_directly_are_those_of_the_rows() -> None:
    reports = simulated(3, [sim.Fault("crash", 2, ONSET)])
    exact = sim.Reports(
        reports.system, np.round(reports.time, 6), reports.arrival, reports.cell, reports.status
    )
    made = window_of(exact, 4.0, 12.0)
    tables = {"observation": decoded("observation", observation_rows(exact))}
    read = offline.reduce(
        ANALYZER.inputs[0], tables, EPOCH + timedelta(seconds=4), EPOCH + timedelta(seconds=12)
    )
    assert rows_of(made.sums["seen"]) == rows_of(read["seen"])
    assert made.sums["seen"].values["times"].tolist() == read["seen"].values["times"].tolist()


def test_a_gray_failure_is_seen_in_its_context_and_not_by_heartbeats() -> None:
    system = sim.build(TINY, np.random.default_rng(5))
    fault = sim.Fault("gray", int(system.subject[0]), ONSET, severity=0.8, context=int(system.context[0]))
    reports = simulated(5, [fault])
    subject = reports.system.subject == fault.process
    hit = subject & (reports.system.context == fault.context)
    assert failing(reports, hit) == pytest.approx(0.8, abs=0.12)
    assert failing(reports, subject & ~hit) < 0.02


def test_a_hang_leaves_calls_without_an_answer() -> None:
    rng = np.random.default_rng(6)
    system = sim.build(TINY, rng)
    fault = sim.draw_gray(system, rng, "hang", ONSET)
    reports = sim.observe(system, rng, 24.0, [fault])
    mine = (system.subject == fault.process) & (system.context == fault.context)
    after = mine[reports.cell] & (reports.time > ONSET + 1)
    asked, answered = (
        int(np.sum(after & (reports.status == status))) for status in (sim.PENDING, sim.HEALTHY)
    )
    assert answered / asked == pytest.approx(1 - fault.severity, abs=0.15)


def test_an_overloaded_observer_complains_about_everyone() -> None:
    reports = simulated(7, [sim.Fault("overload", 3, ONSET, severity=0.5)])
    mine = reports.system.observer == 3
    assert failing(reports, mine) == pytest.approx(0.5, abs=0.1)
    assert failing(reports, ~mine) < 0.01


def test_who_crashed_reports_nothing_and_is_seen_to_fail_in_everything() -> None:
    reports = simulated(8, [sim.Fault("crash", 3, ONSET)])
    assert failing(reports, reports.system.subject == 3) == 1.0
    assert not np.any((reports.system.observer == 3)[reports.cell] & (reports.time > ONSET + 1))


def test_a_partition_cuts_both_ways_and_heals() -> None:
    reports = simulated(9, [sim.Fault("partition", 3, ONSET, ONSET + 5)])
    across = (reports.system.subject == 3) ^ (reports.system.observer == 3)
    assert failing(reports, across, until=ONSET + 5) > 0.95
    assert failing(reports, across, since=ONSET + 6.1) < 0.02
    assert failing(reports, ~across) < 0.01


def test_a_clock_that_is_ahead_stamps_later() -> None:
    plain, ahead = simulated(10, []), simulated(10, [sim.Fault("clock", 3, 0.0, severity=30.0)])
    mine = (ahead.system.observer == 3)[ahead.cell]
    assert ahead.time[mine].min() >= 30.0
    assert len(ahead.time) == len(plain.time)


def test_lost_reports_are_missing_and_late_ones_arrive_later() -> None:
    rng = np.random.default_rng(11)
    system = sim.build(TINY, rng)
    all_of = sim.observe(system, np.random.default_rng(1), 20.0)
    some = sim.observe(
        system, np.random.default_rng(1), 20.0, (), sim.Transport(lost=0.2, late=0.5, late_seconds=4.0)
    )
    assert len(some.time) / len(all_of.time) == pytest.approx(0.8, abs=0.02)
    assert np.mean(some.arrival - some.time > 0.5) == pytest.approx(0.5 * np.exp(-0.5 / 4), abs=0.1)


def test_heartbeats_come_once_a_second() -> None:
    reports = simulated(12, [])
    cell = int(np.flatnonzero(reports.system.is_heartbeat)[0])
    intervals = np.diff(np.sort(reports.time[reports.cell == cell]))
    assert intervals.mean() == pytest.approx(1.0, abs=0.1)


def test_a_scenario_plants_what_it_says() -> None:
    rows, truth = observation_scenario("panorama_overload", 3)
    assert {fault["kind"] for fault in truth["faults"]} == {"gray", "overload"}
    assert set(rows) == {"observation"}


def test_an_unknown_fault_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown kind of fault 'flood'"):
        simulated(1, [sim.Fault("flood", 1, 1.0)])
