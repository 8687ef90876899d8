"""The straggler of a job is named with its metric and its time; what only looks like one is not."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.paths import texts, whole
from analyzers.builtin.straggler import ANALYZER
from analyzers.builtin.straggler.series import is_iteration_time, observe
from analyzers.contract import Sums, Window, check_params
from analyzers.runner import judge
from analyzers.simulators.training import EPOCH, EVENTS, FAULTS, Fault, Preset, Run, draw_faults, run
from analyzers.simulators.training_windows import window_of
from analyzers.testing import Case, check_analyzer

SMALL = Preset(nodes=10, step=20)
NODE = "node/gpu-0005"
LAST = 1800.0
"""Second at which the last window begins."""


def job(kind: str = "", event: str = "", seed: int = 1, severity: float = 0.3, **preset: Any) -> Run:
    faults = [Fault(kind, 5, severity, LAST + 60, 2400.0)] if kind else []
    return run(replace(SMALL, **preset), np.random.default_rng(seed), faults, event)


def verdict_of(window: Window, **params: Any) -> Mapping[str, Any]:
    return judge(ANALYZER, window, params)


def named(window: Window, **params: Any) -> list[str]:
    return [one["component"] for one in verdict_of(window, **params)["suspects"]]


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    def make(seed: int, faulty: bool) -> Case:
        made = job("throttle" if faulty else "", seed=seed, nodes=6)
        return Case(window_of(made, past=1), (NODE,) if faulty else ())

    check_analyzer(ANALYZER, make, seeds=range(1), names={"labels.node": ""})


@pytest.mark.simulated
@pytest.mark.parametrize("kind", FAULTS)
def test_a_node_with_a_fault_is_named_and_no_other(kind: str) -> None:
    assert named(window_of(job(kind), past=1)) == [NODE]


@pytest.mark.simulated
@pytest.mark.parametrize("event", ["", *EVENTS])
def test_what_is_no_fault_is_silent(event: str) -> None:
    assert named(window_of(job(event=event))) == []


def test_a_slow_node_is_gray_and_slow_since_its_fault() -> None:
    verdict = verdict_of(window_of(job("throttle")))
    (suspect,) = verdict["suspects"]
    since = datetime.fromisoformat(suspect["first_failure"]) - EPOCH
    assert abs(since - timedelta(seconds=LAST + 60)) <= timedelta(seconds=60)
    assert "slows job llm-70b" in suspect["summary"]
    assert suspect["indicator"].startswith("gpu_")
    (blamed,) = [one for one in verdict["evidence"] if one["title"] == "Blamed nodes and their metrics"]
    assert {row[1] for row in blamed["rows"]} == {"gray"}


@pytest.mark.simulated
@pytest.mark.parametrize("kind", ["hang", "crash"])
def test_a_node_that_stops_its_job_has_stopped(kind: str) -> None:
    verdict = verdict_of(window_of(job(kind)))
    (blamed,) = [one for one in verdict["evidence"] if one["title"] == "Blamed nodes and their metrics"]
    assert {row[1] for row in blamed["rows"]} == {"stopped"}
    assert "iterations of job llm-70b ended" in verdict["suspects"][0]["summary"]


def in_bursts(kind: str, on: float = 0.5, period: float = 100.0, **preset: Any) -> Run:
    fault = Fault(kind, 5, 0.4, LAST + 60, 2400.0, period, on)
    return run(replace(SMALL, **preset), np.random.default_rng(4), [fault])


@pytest.mark.simulated
@pytest.mark.parametrize("kind", ["throttle", "slow_nic"])
def test_a_node_that_is_slow_in_bursts_is_named_with_their_number(kind: str) -> None:
    (suspect,) = verdict_of(window_of(in_bursts(kind, step=10)))["suspects"]
    assert suspect["component"] == NODE
    assert re.search(r"slows job llm-70b in \d+ bursts: ", suspect["summary"])


def test_bursts_that_the_job_does_not_wait_for_name_nobody() -> None:
    made = in_bursts("throttle", step=10)
    made.took = np.full_like(made.took, float(np.median(made.took)))
    assert named(window_of(made)) == []


def test_bursts_of_load_are_no_fault() -> None:
    """A host that is busy now and then while the job pauses writes a checkpoint."""
    made = in_bursts("slow_host", step=10)
    made.values["gpu_sm_clock_mhz"][:] = np.nan
    assert named(window_of(made)) == []


def test_two_nodes_at_once_are_both_named() -> None:
    made = run(
        SMALL, np.random.default_rng(2), [Fault("throttle", at, 0.3, LAST + 60, 2400.0) for at in (2, 5)]
    )
    assert sorted(named(window_of(made))) == ["node/gpu-0002", NODE]


def test_a_node_that_was_slow_before_does_not_hide_the_one_that_is_slow_now() -> None:
    faults = [Fault("throttle", 2, 0.4, 300.0, 1500.0), Fault("throttle", 5, 0.3, LAST + 60, 2400.0)]
    made = run(SMALL, np.random.default_rng(3), faults)
    assert named(window_of(made)) == [NODE]


@pytest.mark.simulated
def test_without_iteration_times_a_slow_gpu_is_named_and_a_busy_host_is_not() -> None:
    assert named(window_of(job("throttle", paced=False))) == [NODE]
    assert named(window_of(job(event="evaluation", paced=False))) == []


def test_a_fifth_of_the_rows_missing_hides_no_fault() -> None:
    made = job("throttle", "missing_rows")
    assert named(window_of(made)) == [NODE]


def test_a_slowdown_that_no_node_explains_is_inconclusive_with_its_time() -> None:
    made = job("throttle")
    window = window_of(made)
    only = {"series": _kept(window.sums["series"], "train_iteration_seconds")}
    past = tuple(
        replace(one, sums={"series": _kept(one.sums["series"], "train_iteration_seconds")})
        for one in window.history
    )
    verdict = verdict_of(replace(window, sums=only, history=past))
    assert verdict["status"] == "inconclusive"
    assert "times as long since 2026-01-05 00:3" in verdict["reason"]
    assert "no metric of its nodes says which" in verdict["reason"]


def _kept(sums: Sums, name: str) -> Sums:
    kept = [at for at, one in enumerate(texts(sums, "name")) if one == name]
    keys: dict[str, Any] = {key: tuple(texts(sums, key)[at] for at in kept) for key in ("name", "labels")}
    keys["slice"] = whole(sums, "slice")[kept]
    return Sums(keys, {key: column[kept] for key, column in sums.values.items()}, len(kept))


def test_metrics_that_name_no_node_are_inconclusive_and_say_what_would_be_right() -> None:
    verdict = verdict_of(of_series({f'{{"pod":"p{n}"}}': [1.0] * 30 for n in range(8)}))
    assert verdict["status"] == "inconclusive"
    assert "node_label" in verdict["reason"]
    assert verdict_of(of_series({f'{{"pod":"p{n}"}}': [1.0] * 30 for n in range(8)}), node_label="pod")[
        "status"
    ] == ("quiet")


def of_series(series: Mapping[str, list[float]], name: str = "gpu_util") -> Window:
    """A window with one value a slice of each series, by its labels."""
    ordered = sorted(series.items())
    flat = [(labels, at, value) for labels, values in ordered for at, value in enumerate(values)]
    keys: dict[str, Any] = {
        "name": (name,) * len(flat),
        "labels": tuple(one[0] for one in flat),
        "slice": np.array([one[1] for one in flat], dtype=np.int64),
    }
    values = {
        "total": np.array([one[2] for one in flat]),
        "samples": np.ones(len(flat), dtype=np.int64),
    }
    return Window(
        EPOCH, EPOCH + timedelta(minutes=5), "default", "metric", {"series": Sums(keys, values, len(flat))}
    )


@pytest.mark.parametrize(
    ("labels", "node"),
    [
        ({"node": "gpu-1"}, "node/gpu-1"),
        ({"instance": "gpu-1:9400"}, "node/gpu-1"),
        ({"Hostname": "gpu-1", "instance": "10.0.0.1:9400"}, "node/gpu-1"),
        ({"host": "host/gpu-1"}, "host/gpu-1"),
        ({"rank": "17"}, "rank/17"),
    ],
)
def test_labels_name_a_node(labels: dict[str, str], node: str) -> None:
    seen = observe(of_series({json.dumps(labels): [1.0]}), check_params(ANALYZER, {}))
    assert seen.nodes == (node,)


def test_nodes_are_compared_within_their_role() -> None:
    series = {
        json.dumps({"node": f"n{n:02d}", "role": "a" if n < 8 else "b"}): [90.0 if n < 8 else 40.0] * 30
        for n in range(16)
    }
    seen = observe(of_series(series), check_params(ANALYZER, {}))
    assert [grid.cohort for grid in seen.grids] == [(("role", "a"),), (("role", "b"),)]
    assert named(of_series(series)) == []


def test_a_counter_is_judged_by_what_it_grows_by() -> None:
    series = {json.dumps({"node": f"n{n}"}): [100.0 * (n + 1) + 5 * at for at in range(30)] for n in range(8)}
    (grid,) = observe(of_series(series, "nic_resent_total"), check_params(ANALYZER, {})).grids
    assert np.nanmin(grid.values) == np.nanmax(grid.values) == 5.0


@pytest.mark.parametrize(
    ("name", "so"),
    [
        ("train_iteration_seconds", True),
        ("step_time_ms", True),
        ("iteration_time", True),
        ("iterations_total", False),
        ("gpu_util", False),
    ],
)
def test_iteration_times_are_known_by_their_name(name: str, so: bool) -> None:
    assert is_iteration_time(name) is so


def test_faults_are_drawn_from_a_seed() -> None:
    one, two = (draw_faults(SMALL, np.random.default_rng(4), "throttle", (10, 20), 2) for _ in range(2))
    assert one == two


def clocks(since: int) -> Window:
    """Clocks of four nodes, read every 30 s at moments of their own; that of the last is throttled from a slice on."""
    rng = np.random.default_rng(4)
    window = of_series(
        {
            json.dumps({"node": f"n{n}"}): [
                (1100.0 if n == 3 and at >= since else 1755.0) + rng.normal(0, 4) for at in range(30)
            ]
            for n in range(4)
        },
        "DCGM_FI_DEV_SM_CLOCK",
    )
    sums = window.sums["series"]
    nodes = np.array([int(json.loads(one)["node"][1:]) for one in texts(sums, "labels")])
    read = np.flatnonzero(whole(sums, "slice") % 3 == nodes % 3)
    keys: dict[str, Any] = {
        name: key[read] if isinstance(key, np.ndarray) else tuple(key[one] for one in read.tolist())
        for name, key in sums.keys.items()
    }
    values = {name: value[read] for name, value in sums.values.items()}
    return replace(window, sums={"series": Sums(keys, values, len(read))})


def test_a_throttled_clock_names_one_node_of_four_that_are_read_at_other_moments() -> None:
    begun, later = clocks(8), clocks(0)
    length = begun.end - begun.start

    assert named(begun) == ["node/n3"]
    assert named(replace(later, start=begun.end, end=begun.end + length, history=(begun,))) == ["node/n3"]
    assert named(clocks(30)) == []
