"""The service behind changed metrics is named with its indicator and the path; what only looks like a fault is not."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from functools import cache
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.metric_blame import ANALYZER
from analyzers.builtin.metric_blame.indicators import sort_of
from analyzers.builtin.metric_blame.series import observe
from analyzers.contract import Sums, Window, check_params
from analyzers.runner import judge
from analyzers.simulators.services.application import EPOCH, Fault, Preset, Run, run, window_of
from analyzers.simulators.tables import paths_of
from analyzers.testing import Case, check_analyzer

SMALL = Preset(services=8)
LAST = SMALL.seconds - 600.0
SEVERITY = {"delay": 6.0, "errors": 0.3, "cpu_hog": 5.0, "memory_leak": 3.0, "disk": 20.0, "loss": 6.0}


@cache
def application(kind: str = "", event: str = "", seed: int = 1) -> Run:
    faults = (Fault(kind, 5, SEVERITY[kind], LAST + 60, SMALL.seconds),) if kind else ()
    return run(SMALL, np.random.default_rng(seed), faults, event)


def verdict_of(window: Window, **params: Any) -> Mapping[str, Any]:
    return judge(ANALYZER, window, params)


def named(window: Window, **params: Any) -> list[str]:
    return [one["component"] for one in verdict_of(window, **params)["suspects"]]


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    def make(seed: int, faulty: bool) -> Case:
        made = application("delay" if faulty else "", seed=seed)
        return Case(window_of(made, past=3), (made.name(5),) if faulty else ())

    check_analyzer(ANALYZER, make, seeds=range(1), names={"labels.service": "service"})


@pytest.mark.parametrize("kind", ["errors", "cpu_hog", "loss"])
def test_the_service_at_fault_is_named(kind: str) -> None:
    made = application(kind)
    assert named(window_of(made)) == [made.name(5)]


def test_without_calls_the_service_that_changed_most_is_named() -> None:
    made = application("delay")
    assert named(window_of(made, calls=False)) == [made.name(5)]


@pytest.mark.parametrize("event", ["", "surge", "deployment", "earlier_fault"])
def test_a_window_without_a_fault_names_nobody(event: str) -> None:
    assert named(window_of(application(event=event, seed=2))) == []


def test_the_verdict_tells_indicator_onset_and_path_to_the_symptom() -> None:
    made = application("delay")
    (suspect,) = verdict_of(window_of(made))["suspects"]
    since = datetime.fromisoformat(suspect["first_failure"]) - EPOCH
    assert abs(since - timedelta(seconds=LAST + 60)) <= timedelta(seconds=60)
    assert suspect["indicator"].startswith("request_latency")
    callers = {made.name(one) for one, called in enumerate(made.calls) if 5 in called}
    assert suspect["path"][0] == made.name(5)
    assert suspect["path"][1] in callers
    assert 0.5 < suspect["score"] < 1


def test_resources_that_nobody_notices_are_inconclusive() -> None:
    made = application()
    values = {name: table.copy() for name, table in made.values.items()}
    values["cpu_usage_cores"][3, -15:] *= 6
    verdict = verdict_of(window_of(replace(made, values=values)))
    assert verdict["status"] == "inconclusive"
    assert "no component is slower or fails more than usual" in verdict["reason"]
    assert made.name(3) in verdict["reason"]


def busy(name: str, usual: float, value: float, services: tuple[int, ...] = (3,)) -> Window:
    """Of some services the processor goes from `usual` to `value`, and nobody notices."""
    made = application()
    shape = made.values["cpu_usage_cores"].shape
    share = usual * np.exp(np.random.default_rng(7).normal(0, 0.03, shape))
    share[list(services), -15:] = value
    return window_of(replace(made, values={**made.values, name: share}))


@pytest.mark.parametrize(
    ("name", "usual", "value", "saturated"),
    [
        ("cpu_utilization_percent", 10, 95, True),
        ("CpuUsageRate(%)", 30, 101, True),
        ("cpu_utilization_percent", 10, 60, False),
        ("cpu_utilization_percent", 60, 95, False),
        ("process_cpu_percent", 90, 380, False),
        ("NodeCpuUsageRate(%)", 10, 95, False),
        ("memory_utilization_percent", 10, 95, False),
    ],
)
def test_a_saturated_processor_needs_no_symptom(
    name: str, usual: float, value: float, saturated: bool
) -> None:
    verdict = verdict_of(busy(name, usual, value))
    if not saturated:
        assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
        return
    (suspect,) = verdict["suspects"]
    assert (suspect["component"], suspect["ambiguous_with"]) == (application().name(3), [])
    assert (suspect["score"], suspect["sure"], suspect["indicator"]) == (pytest.approx(0.6), False, name)
    assert "its processor is saturated, and no component is slower or fails more" in suspect["summary"]


def test_several_saturated_processors_are_not_told_apart() -> None:
    made = application()
    (suspect,) = verdict_of(busy("cpu_utilization_percent", 10, 95, (3, 6)))["suspects"]
    assert {suspect["component"], *suspect["ambiguous_with"]} == {made.name(3), made.name(6)}
    everywhere = verdict_of(busy("cpu_utilization_percent", 10, 95, tuple(range(7))))
    assert (everywhere["status"], everywhere["suspects"]) == ("inconclusive", [])


@pytest.mark.parametrize(("slower", "times", "expected"), [(3, 1.5, ["service/s01"]), (6, 1.4, [])])
def test_of_a_component_with_clear_internal_changes_its_callers_alone_are_asked(
    slower: int, times: float, expected: list[str]
) -> None:
    """Latency of `s01`, whose processor is busy, has 5.3 nats over all series and counts; that of another, 6.3."""
    made = application()
    values = {name: table.copy() for name, table in made.values.items()}
    values["cpu_usage_cores"][3, -15:] *= 6
    values["request_latency_seconds"][slower, -15:] *= times
    assert named(window_of(replace(made, values=values))) == expected


def test_without_history_nothing_is_known() -> None:
    verdict = verdict_of(window_of(application("delay"), past=0))
    assert verdict["status"] == "inconclusive"
    assert "what is usual is not known" in verdict["reason"]


def test_series_without_a_component_are_told_with_the_parameter_that_names_one() -> None:
    window = hand_made([("up", '{"cluster":"a"}', [1.0] * 20)])
    verdict = verdict_of(window)
    assert verdict["status"] == "inconclusive"
    assert "component_label" in verdict["reason"]
    assert "readings before this window" in verdict_of(window, component_label="cluster")["reason"]


def test_a_histogram_is_read_as_its_mean_and_its_count_as_load() -> None:
    count = np.cumsum(np.full(40, 10.0))
    window = hand_made(
        [
            ("http_server_duration_count", '{"service.name":"cart"}', count.tolist()),
            ("http_server_duration_sum", '{"service.name":"cart"}', (0.2 * count).tolist()),
            ("http_server_duration_bucket", '{"le":"1","service.name":"cart"}', count.tolist()),
        ]
    )
    seen = observe(window, check_params(ANALYZER, {}))
    assert [(one.name, one.sort) for one in seen.series] == [
        ("http_server_duration_count", "load"),
        ("http_server_duration", "latency"),
    ]
    assert seen.values[1][np.isfinite(seen.values[1])] == pytest.approx(0.2)


def test_a_component_is_the_one_of_the_topology_with_that_name() -> None:
    window = hand_made([("latency", '{"app":"db"}', [1.0] * 20)])
    needs = Sums(
        {"component": ("service/web",), "depends_on": paths_of([("database/db",)])}, {"rows": np.ones(1)}, 1
    )
    seen = observe(replace(window, sums={**window.sums, "needs": needs}), check_params(ANALYZER, {}))
    assert [one.component for one in seen.series] == ["database/db"]


@pytest.mark.parametrize(
    ("name", "labels", "sort"),
    [
        ("istio_request_duration_milliseconds", {}, "latency"),
        ("latency-90", {}, "latency"),
        ("http_requests_total", {}, "load"),
        ("http_requests_total", {"status": "503"}, "errors"),
        ("container_cpu_usage_seconds_total", {}, "internal"),
        ("availability", {}, "availability"),
        ("request_errors", {}, "errors"),
        ("http_request_duration_seconds_bucket", {"le": "1"}, "none"),
        ("orders_open", {}, "other"),
        ("PodServerLatencyP90(s)", {}, "latency"),
        ("CPUUtilization", {}, "internal"),
        ("TargetResponseTime", {}, "latency"),
        ("HTTPCode_Target_5XX_Count", {}, "errors"),
        ("RequestCount", {}, "load"),
        ("GFLOPs", {}, "other"),
        ("http_client_request_duration_seconds", {}, "none"),
        ("PodClientLatencyP99(s)", {}, "none"),
        ("redis_connected_clients", {}, "other"),
    ],
)
def test_the_words_of_a_metric_tell_its_sort(name: str, labels: dict[str, str], sort: str) -> None:
    assert sort_of(name, labels) == sort


def hand_made(series: list[tuple[str, str, list[float]]]) -> Window:
    keys = [(name, labels, at) for name, labels, values in series for at in range(len(values))]
    values = [value for _, _, one in series for value in one]
    columns: dict[str, Any] = {
        "name": tuple(key[0] for key in keys),
        "labels": tuple(key[1] for key in keys),
        "slice": np.array([key[2] for key in keys], dtype=np.int64),
    }
    sums = Sums(
        columns, {"total": np.array(values), "samples": np.ones(len(keys), dtype=np.int64)}, len(keys)
    )
    return Window(EPOCH, EPOCH + timedelta(minutes=20), "default", "metric", {"series": sums})
