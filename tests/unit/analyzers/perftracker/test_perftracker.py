"""The worker at fault is named with its function, its victims are not, and a cause of all is a cause of the job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.perftracker import ANALYZER
from analyzers.builtin.perftracker.patterns import roles
from analyzers.contract import Paths, Sums, Window
from analyzers.runner import judge
from analyzers.simulators.profiles import COMMON, EVENTS, FAULTS, Fault, Preset, Profile, profile, window_of
from analyzers.testing import Case, check_analyzer

SMALL = Preset(workers=48, stages=2, minor=2)
WORKER = "worker/7"


def made(kind: str = "", event: str = "", severity: float = 0.25, seed: int = 1, **preset: Any) -> Profile:
    faults = [Fault(kind, 7, severity)] if kind else []
    return profile(replace(SMALL, **preset), np.random.default_rng(seed), faults, event)


def verdict_of(one: Profile, **params: Any) -> Mapping[str, Any]:
    return judge(ANALYZER, window_of(one), params)


def named(one: Profile, **params: Any) -> list[str]:
    return [suspect["component"] for suspect in verdict_of(one, **params)["suspects"]]


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    def make(seed: int, faulty: bool) -> Case:
        one = made("slow_nic" if faulty else "", seed=seed, workers=16, stages=1, minor=0)
        return Case(window_of(one), (WORKER,) if faulty else ())

    check_analyzer(ANALYZER, make, seeds=range(1), names={"job": "job"})


@pytest.mark.simulated
@pytest.mark.parametrize("kind", FAULTS)
def test_the_worker_and_the_function_are_named_and_no_victim(kind: str) -> None:
    (suspect,) = verdict_of(made(kind))["suspects"]
    assert suspect["component"] == WORKER
    assert suspect["indicator"].startswith(f"{FAULTS[kind]} ")


@pytest.mark.simulated
@pytest.mark.parametrize("event", ["", *EVENTS])
def test_what_is_no_fault_is_silent(event: str) -> None:
    assert named(made(event=event)) == []


@pytest.mark.simulated
@pytest.mark.parametrize("kind", COMMON)
def test_a_cause_of_all_workers_is_named_as_the_jobs(kind: str) -> None:
    (suspect,) = verdict_of(made(kind))["suspects"]
    assert suspect["component"] == "job/llm-70b"
    assert suspect["indicator"] == f"{COMMON[kind]} share of the critical path"


@pytest.mark.simulated
def test_a_common_function_that_always_was_so_is_not_named() -> None:
    now, before = (window_of(made("common_loader", seed=seed)) for seed in (1, 2))
    assert judge(ANALYZER, replace(now, history=(before,)))["status"] == "quiet"
    healthy = window_of(made(seed=2))
    assert judge(ANALYZER, replace(now, history=(healthy,)))["status"] == "named"


def hooked(severity: float, seed: int) -> Window:
    """A profile in which the garbage of all workers takes so much more of the path."""
    return window_of(made("common_gc" if severity else "", severity=severity, seed=seed))


def status(*severities: float) -> str:
    """Status of the last of these profiles, with the others before it."""
    *past, now = [hooked(severity, seed) for seed, severity in enumerate(severities)]
    return str(judge(ANALYZER, replace(now, history=tuple(past)))["status"])


@pytest.mark.simulated
def test_a_small_step_of_all_workers_is_named_once_a_second_profile_shows_it() -> None:
    assert status(0, 0, 0, 0.035) == "quiet"
    assert status(0, 0, 0.035, 0.035) == "named"


@pytest.mark.simulated
def test_a_step_of_all_workers_stays_named_while_a_profile_before_it_is_known() -> None:
    assert status(0, 0.1, 0.1, 0.1) == "named"
    assert status(0.1, 0.1, 0.1, 0.1) == "quiet"


@pytest.mark.simulated
def test_what_all_workers_do_now_and_then_is_no_step() -> None:
    assert status(0, 0.1, 0, 0.1) == "quiet"
    assert status(0.1, 0, 0, 0.1, 0.1) == "quiet"


def test_without_an_earlier_profile_a_small_share_of_all_workers_cannot_be_judged() -> None:
    verdict = judge(ANALYZER, hooked(0.035, 1))
    assert verdict["status"] == "quiet"
    assert [one["name"] for one in verdict["assumptions"] if not one["holds"]] == ["history"]


def test_two_workers_at_once_are_both_named() -> None:
    faults = [Fault("slow_nic", 7, 0.3), Fault("slow_loader", 30, 0.3)]
    one = profile(SMALL, np.random.default_rng(1), faults)
    assert sorted(named(one)) == ["worker/30", WORKER]


def test_workers_are_compared_within_their_role() -> None:
    one = made()
    one.values[1, :, 24:] *= 0.5
    assert named(one) == []


@pytest.mark.simulated
def test_a_capped_link_and_a_congested_one_are_told_apart() -> None:
    suspects = [verdict_of(made(kind))["suspects"][0] for kind in ("slow_nic", "congestion")]
    assert {one["indicator"] for one in suspects} == {"all_reduce use"}
    said = [one["summary"] for one in suspects]
    assert "capped" in said[0]
    assert "congested" in said[1]


def test_the_published_rule_names_the_culprit_too_and_has_no_probability() -> None:
    suspects = verdict_of(made("slow_loader", spread=0.02), method="published")["suspects"]
    assert WORKER in [one["component"] for one in suspects]
    assert {one["score"] for one in suspects} == {None}


def test_a_role_of_too_few_workers_is_inconclusive() -> None:
    verdict = verdict_of(made(workers=2, stages=1), min_workers=4)
    assert (verdict["status"], "has 2 workers" in (verdict["reason"] or "")) == ("inconclusive", True)


@pytest.mark.simulated
def test_a_link_that_is_used_less_in_all_collectives_is_found_among_workers_that_differ_much() -> None:
    one = made(spread=0.1, seed=0)
    links = [at for at, function in enumerate(one.functions) if function.cls == "collective"]
    assert len(links) > 2
    one.values[1:, links, 7] *= 0.7
    assert named(one) == [WORKER]


def test_several_profiles_of_a_window_are_averaged() -> None:
    window: Window = window_of(made())
    sums = window.sums["profiles"]
    twice = replace(sums, values={name: 2 * column for name, column in sums.values.items()})
    first, second = roles(sums), roles(twice)
    assert np.allclose(first[0].values, second[0].values)


@pytest.mark.simulated
def test_an_odd_value_is_no_fault_where_as_odd_ones_are_on_the_better_side() -> None:
    """One value in a hundred is off by up to 1.8 times, to either side."""
    one, rng = made(workers=1024, stages=1), np.random.default_rng(1)
    odd = rng.random(one.values.shape) < 0.01
    one.values[odd] *= np.exp(rng.uniform(-0.6, 0.6, int(odd.sum())))
    assert named(one) == []


@pytest.mark.simulated
@pytest.mark.parametrize(("longer", "less_used"), [(1.0, 0.6), (1.3, 0.6)])
def test_a_kernel_that_uses_less_is_no_fault_where_nobody_waits_for_it(
    longer: float, less_used: float
) -> None:
    one = made()
    gemm = [function.name for function in one.functions].index("gemm_fp8")
    one.values[:2, gemm, 7] *= longer, less_used
    assert named(one) == []


def slow_loader(slow: list[int]) -> Profile:
    """A role of 32 workers, some of which take longer to load; all others wait for them."""
    one = made(workers=32, stages=1)
    names = [function.name for function in one.functions]
    others = [worker for worker in range(32) if worker not in slow]
    one.values[0, names.index("dataloader.next"), slow] += 0.08
    one.values[0, names.index("all_reduce"), others] += 0.08
    return one


def test_a_loader_that_is_slow_on_a_quarter_of_a_role_is_not_silent() -> None:
    verdict = verdict_of(slow_loader(list(range(0, 32, 4))))
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
    assert "dataloader.next differs on 8 workers" in verdict["reason"]


@pytest.mark.simulated
def test_workers_of_one_host_by_their_numbers_are_one_suspect() -> None:
    (suspect,) = verdict_of(slow_loader(list(range(8, 16))))["suspects"]
    assert {suspect["component"], *suspect["ambiguous_with"]} == {f"worker/{n}" for n in range(8, 16)}
    assert "and 7 more of its host by their numbers each spend" in suspect["summary"]


@pytest.mark.simulated
def test_a_host_that_the_topology_knows_is_named_by_its_node() -> None:
    (suspect,) = judge(ANALYZER, placed(slow_loader(list(range(8, 16)))))["suspects"]
    assert (suspect["component"], suspect["ambiguous_with"]) == ("node/gpu-1", [])
    assert suspect["path"] == ["node/gpu-1", "job/llm-70b"]


@pytest.mark.simulated
def test_workers_side_by_side_on_two_nodes_are_no_host() -> None:
    assert judge(ANALYZER, placed(slow_loader(list(range(8, 16))), each=4))["status"] == "inconclusive"


def placed(one: Profile, each: int = 8) -> Window:
    """The window of a profile with the nodes of its workers, `each` workers a node."""
    window = window_of(one)
    count = len({worker for role in roles(window.sums["profiles"]) for worker in role.workers})
    workers = tuple(f"worker/{n}" for n in range(count))
    names = tuple(f"node/gpu-{n}" for n in range(-(-count // each)))
    parents = Paths(names, np.arange(count + 1), (np.arange(count) // each).astype(np.int32))
    places = Sums({"component": workers, "parents": parents}, {"rows": np.ones(count, dtype=np.int64)}, count)
    return replace(window, sums={**window.sums, "places": places})


@pytest.mark.simulated
def test_the_node_of_a_worker_stands_in_the_path_and_in_the_evidence() -> None:
    one = made("slow_nic")

    verdict = judge(ANALYZER, placed(one))

    (suspect,) = verdict["suspects"]
    assert suspect["path"] == [WORKER, "node/gpu-0", "job/llm-70b"]
    (blamed,) = [piece for piece in verdict["evidence"] if piece["title"].startswith("Blamed")]
    assert blamed["rows"][0][blamed["columns"].index("node")] == "node/gpu-0"
    assert "path" not in verdict_of(one)["suspects"][0]


@pytest.mark.simulated
def test_a_doubtful_worker_is_named_if_a_profile_before_named_it_for_the_same_function() -> None:
    now = window_of(made("slow_nic", severity=0.1, seed=4, spread=0.12))
    sure = window_of(made("slow_nic", severity=0.3, seed=2))
    other = window_of(made("slow_pcie", severity=0.3, seed=3))

    def named_after(*history: Window) -> list[str]:
        return [one["component"] for one in judge(ANALYZER, replace(now, history=history))["suspects"]]

    assert named_after(sure) == [WORKER]
    assert named_after() == named_after(other) == named_after(sure, other, other) == []


def test_a_copy_that_uses_less_is_found_if_it_costs_half_of_the_least_share() -> None:
    one = made()
    copy = [function.name for function in one.functions].index("memcpy_h2d")
    one.values[0, copy] *= 0.3
    one.values[:2, copy, 7] *= 2.45, 0.4
    assert named(one) == [WORKER]
    assert one.values[0, copy].max() < 0.02


@pytest.mark.simulated
def test_an_odd_use_of_one_collective_by_another_worker_makes_no_group() -> None:
    one = made(workers=32, stages=1)
    links = [at for at, function in enumerate(one.functions) if function.cls == "collective"]
    one.values[1:, links, 7] *= 0.6
    one.values[1, links[0], 20] = one.values[1, links[0], 7]
    assert WORKER in named(one)
    one.values[1, links, 20] = one.values[1, links, 7]
    assert named(one) == []
