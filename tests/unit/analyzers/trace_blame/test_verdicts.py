"""Verdicts of `trace_blame` on simulated systems."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.trace_blame import ANALYZER
from analyzers.contract import Window
from analyzers.runner import judge
from analyzers.simulators.trace_rows import truth_of, window
from analyzers.simulators.traces import Fault, Operation, System, build_system, draw_fault, record
from analyzers.testing import Case, check_analyzer

HISTORY = 3


@cache
def system_of(seed: int, replicas: int = 3) -> System:
    return build_system(np.random.default_rng(seed), services=5, requests=70.0, replicas=replicas)


@cache
def past_of(seed: int, replicas: int = 3) -> tuple[Window, ...]:
    rng = np.random.default_rng([seed, 1])
    system = system_of(seed, replicas)
    return tuple(window(record(system, rng, minute), minute) for minute in range(HISTORY))


def judged(
    seed: int, fault: Fault | None = None, benign: str | None = None, replicas: int = 3
) -> dict[str, Any]:
    return judge(ANALYZER, now(seed, fault, benign, replicas))


def now(seed: int, fault: Fault | None = None, benign: str | None = None, replicas: int = 3) -> Window:
    rng = np.random.default_rng([seed, 2])
    recorded = record(system_of(seed, replicas), rng, HISTORY, fault, benign)
    return window(recorded, HISTORY, past_of(seed, replicas))


def case(seed: int, faulty: bool) -> Case:
    if not faulty:
        return Case(now(seed))
    fault = draw_fault(system_of(seed), np.random.default_rng([seed, 3]), "network_delay")
    return Case(now(seed, fault), (truth_of(system_of(seed), fault),))


def busiest(system: System, replicas: int = 1) -> int:
    """A service that others call, of at least that many replicas."""
    called = {system.operations[to].service for one in system.operations for to, _ in one.calls}
    return next(service for service in sorted(called) if len(system.replicas[service]) >= replicas)


@pytest.mark.simulated
def test_it_has_every_property_of_an_analyzer() -> None:
    names = {"service": "service", "instance": "instance"}
    check_analyzer(ANALYZER, case, seeds=(1,), names=names)


@pytest.mark.simulated
@pytest.mark.parametrize("kind", ["cpu_contention", "cpu_consumed", "network_delay"])
def test_one_slow_replica_is_named_and_not_its_service(kind: str) -> None:
    system = system_of(4)
    service = busiest(system, replicas=2)
    strength = 300_000.0 if kind == "network_delay" else 30.0
    verdict = judged(4, Fault(kind, service, 1, strength))
    assert verdict["suspects"][0]["component"] == f"instance/{system.replicas[service][1]}"
    assert len(verdict["suspects"]) == 1


def test_a_slow_service_that_is_asked_for_more_than_ever_before_may_be_slow_because_of_it() -> None:
    system = system_of(4)
    fault = Fault("network_delay", busiest(system), None, 300_000.0)
    more = replace(system, entries=tuple((entry, 2.5 * rate) for entry, rate in system.entries))
    recorded = record(more, np.random.default_rng([4, 2]), HISTORY, fault)
    loaded = judge(ANALYZER, window(recorded, HISTORY, past_of(4)))
    assert loaded["suspects"][0]["component"] == f"service/{system.services[fault.service]}"
    assert loaded["suspects"][0]["score"] < judged(4, fault)["suspects"][0]["score"]
    (noise,) = (one for one in loaded["assumptions"] if one["name"] == "noise")
    assert not noise["holds"]
    assert "times as often as in any window before" in noise["detail"]


def test_replicas_that_are_slow_alike_are_one_service() -> None:
    system = system_of(4)
    service = busiest(system, replicas=2)
    verdict = judged(4, Fault("network_delay", service, None, 300_000.0))
    assert [one["component"] for one in verdict["suspects"]] == [f"service/{system.services[service]}"]


def test_a_service_and_its_only_instance_are_one_entry() -> None:
    system = system_of(5, 1)
    service = busiest(system)
    (suspect,) = judged(5, Fault("network_delay", service, None, 300_000.0), replicas=1)["suspects"]
    assert suspect["component"] == f"service/{system.services[service]}"
    assert suspect["ambiguous_with"] == [f"instance/{system.replicas[service][0]}"]


@pytest.mark.simulated
@pytest.mark.parametrize("kind", ["exception", "return"])
def test_a_service_that_stops_early_is_named_and_not_its_callers(kind: str) -> None:
    system = system_of(4)
    entry = max(system.entries, key=lambda one: one[1])[0]
    service = system.operations[entry].service
    verdict = judged(4, Fault(kind, service, None, 0.9))
    assert verdict["suspects"][0]["component"] == f"service/{system.services[service]}"


def test_what_a_service_does_since_ten_minutes_is_not_normal_yet() -> None:
    system, rng = system_of(6), np.random.default_rng([6, 9])
    entry = max(system.entries, key=lambda one: one[1])[0]
    fault = Fault("return", system.operations[entry].service, None, 0.5)
    windows = [window(record(system, rng, n, fault if n >= 6 else None), n) for n in range(8)]
    third = window(record(system, rng, 8, fault), 8, tuple(windows))
    verdict = judge(ANALYZER, third)
    assert verdict["suspects"][0]["component"] == f"service/{system.services[fault.service]}"


@pytest.mark.simulated
@pytest.mark.parametrize(
    "benign", ["restart", "load", "lost_spans", "clock_step", "new_operation", "drain", "agent_crash"]
)
def test_what_is_no_fault_accuses_no_one(benign: str) -> None:
    assert judged(4, benign=benign)["status"] == "quiet"


def test_without_history_it_does_not_guess() -> None:
    alone = replace(now(4), history=())
    verdict = judge(ANALYZER, alone)
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
    assert "0 traces" in verdict["reason"]


def test_an_empty_window_is_inconclusive() -> None:
    empty = replace(now(4), sums=past_of(4)[0].sums)
    nothing = {name: _none(sums) for name, sums in empty.sums.items()}
    assert judge(ANALYZER, replace(empty, sums=nothing))["status"] == "inconclusive"


def _none(sums: Any) -> Any:
    keys = {name: key[:0] for name, key in sums.keys.items()}
    return replace(sums, keys=keys, values={name: one[:0] for name, one in sums.values.items()}, rows=0)


def test_a_fault_that_begins_inside_the_window_is_dated() -> None:
    system = system_of(4)
    service = busiest(system)
    begins = 30e6
    verdict = judged(4, Fault("network_delay", service, None, 300_000.0, start_us=begins))
    first = verdict["suspects"][0]
    assert first["component"] == f"service/{system.services[service]}"
    assert first["first_failure"] >= f"{verdict['window']['start'][:17]}30"


def test_the_share_of_traces_hit_comes_with_its_interval() -> None:
    system = system_of(4)
    verdict = judged(4, Fault("network_delay", busiest(system), None, 300_000.0))
    estimate = verdict["suspects"][0]["estimate"]
    assert estimate["low"] < estimate["failure_rate"] <= estimate["high"]
    assert estimate["failure_rate"] > 0.9


def asked(share: float) -> System:
    """A shop of three pages, each of which asks a cart in that share of its requests, else its cache."""
    pages = tuple(Operation(0, f"page {name}", 3000.0, 0.3, ((3, share),)) for name in "abc")
    return System(
        services=("shop", "cart", "bank"),
        replicas=(("shop-a",), ("cart-a",), ("bank-a",)),
        operations=(*pages, Operation(1, "items", 2000.0, 0.3, ()), Operation(2, "pay", 4000.0, 0.3, ())),
        entries=((0, 60.0), (1, 60.0), (2, 60.0), (4, 60.0)),
        way_us=(800.0,) * 5,
    )


@pytest.mark.parametrize(("share", "named"), [(0.95, []), (0.05, ["service/shop"])])
def test_more_calls_are_a_cold_cache_and_fewer_a_fault(share: float, named: list[str]) -> None:
    rng = np.random.default_rng(5)
    history = tuple(window(record(asked(0.5), rng, minute), minute) for minute in range(HISTORY))
    verdict = judge(ANALYZER, window(record(asked(share), rng, HISTORY), HISTORY, history))
    assert [one["component"] for one in verdict["suspects"]] == named
