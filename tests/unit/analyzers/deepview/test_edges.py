"""Windows that no method likes: it never crashes, and says so when nothing can be said."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from analyzers.contract import Window
from tests.unit.analyzers.deepview.cases import fault, grid, struck, verdict_on, window_of

METHODS = ["binomial", "lasso"]
ONE_PATH: dict[tuple[str, ...], int] = {("tor/a", "storage_cluster/s"): 50}
HEALTHY = window_of(grid(), {("compute_cluster/c0", "storage_cluster/s1"): 1})


def everything_fails() -> Window:
    return window_of(grid(), grid(), history=[HEALTHY] * 3)


@pytest.mark.parametrize("method", METHODS)
def test_no_units_at_all_is_inconclusive(method: str) -> None:
    verdict = verdict_on(window_of({}, {}), method=method)
    assert verdict["status"] == "inconclusive"
    assert "No unit is placed" in verdict["reason"]


@pytest.mark.parametrize("method", METHODS)
def test_failures_of_units_that_are_placed_nowhere_are_inconclusive(method: str) -> None:
    verdict = verdict_on(window_of(grid(), {}, unmatched=40), method=method)
    assert "40 of 40 failures are of units that are placed nowhere" in verdict["reason"]


@pytest.mark.parametrize("method", METHODS)
def test_a_window_without_failures_is_quiet(method: str) -> None:
    assert verdict_on(window_of(grid(), {}), method=method)["status"] == "quiet"


@pytest.mark.parametrize("method", METHODS)
def test_one_path_cannot_be_compared_with_anything(method: str) -> None:
    verdict = verdict_on(window_of(ONE_PATH, ONE_PATH), method=method)
    assert "cannot be compared" in verdict["reason"]


def test_one_path_without_failures_is_quiet() -> None:
    assert verdict_on(window_of(ONE_PATH, {}))["status"] == "quiet"


def test_everything_failing_names_no_scapegoat() -> None:
    verdict = verdict_on(everything_fails())
    assert verdict["status"] == "inconclusive"
    assert "too little is healthy to tell components apart" in verdict["reason"]


def test_everything_failing_without_history_names_no_scapegoat() -> None:
    assert verdict_on(replace(everything_fails(), history=()))["status"] == "inconclusive"


def test_everything_failing_under_one_component_of_all_paths_is_its_fault() -> None:
    placed = {(*path, "t3/region"): units for path, units in grid().items()}
    healthy = window_of(placed, {("compute_cluster/c0", "storage_cluster/s1", "t3/region"): 1})
    verdict = verdict_on(window_of(placed, placed, history=[healthy] * 3))
    assert [suspect["component"] for suspect in verdict["suspects"]] == ["t3/region"]


@pytest.mark.parametrize("method", METHODS)
def test_a_path_that_fails_whole_is_legal(method: str) -> None:
    large = grid(rows=8, columns=8)
    column = {path: units for path, units in large.items() if "storage_cluster/s2" in path}
    verdict = verdict_on(window_of(large, column, history=[HEALTHY] * 3), method=method)
    assert verdict["suspects"][0]["component"] == "storage_cluster/s2"


def test_components_that_are_always_together_share_one_entry() -> None:
    placed = {(*path, path[0].replace("compute_cluster/c", "tor/t")): n for path, n in grid().items()}
    failing = {path: 40 for path in placed if "compute_cluster/c1" in path}
    verdict = verdict_on(window_of(placed, failing, history=[HEALTHY] * 3))
    assert [suspect["component"] for suspect in verdict["suspects"]] == ["compute_cluster/c1"]
    assert verdict["suspects"][0]["ambiguous_with"] == ["tor/t1"]
    assert "do not separate it from" in verdict["suspects"][0]["summary"]


def test_a_tor_whose_units_use_one_storage_cluster_is_named_with_it() -> None:
    placed = grid() | {("compute_cluster/c9", "storage_cluster/s9"): 100}
    failing: dict[tuple[str, ...], int] = {("compute_cluster/c9", "storage_cluster/s9"): 60}
    verdict = verdict_on(window_of(placed, failing, history=[HEALTHY] * 3))
    entry = verdict["suspects"][0]
    assert {entry["component"], *entry["ambiguous_with"]} == {"compute_cluster/c9", "storage_cluster/s9"}


def test_a_host_that_dies_accuses_no_one() -> None:
    host: dict[tuple[str, ...], int] = {
        ("compute_cluster/c1", f"storage_cluster/s{j}", "host/c1-h1"): 5 for j in range(4)
    }
    assert verdict_on(window_of(grid(), host, history=[HEALTHY] * 6))["status"] == "quiet"


def test_the_same_failures_on_many_hosts_accuse_the_cluster() -> None:
    hosts: dict[tuple[str, ...], int] = {
        ("compute_cluster/c1", f"storage_cluster/s{j}", f"host/c1-h{j}{k}"): 1
        for j in range(4)
        for k in range(5)
    }
    verdict = verdict_on(window_of(grid(), hosts, history=[HEALTHY] * 6))
    assert [suspect["component"] for suspect in verdict["suspects"]] == ["compute_cluster/c1"]


def test_a_window_without_history_still_names_what_is_plain() -> None:
    verdict = verdict_on(struck(1, fault("storage_cluster/d1-s2", 0.3), past=0))
    assert [suspect["component"] for suspect in verdict["suspects"]] == ["storage_cluster/d1-s2"]


def test_history_with_the_fault_in_it_does_not_make_it_normal() -> None:
    window = struck(2, replace(fault("storage_cluster/d2-s1", 0.05), start=540))
    verdict = verdict_on(window)
    assert [suspect["component"] for suspect in verdict["suspects"]] == ["storage_cluster/d2-s1"]
    assert verdict["measures"]["baseline"] < 0.005


def test_history_of_other_components_is_no_obstacle() -> None:
    old = window_of({("compute_cluster/gone", "storage_cluster/s0"): 100}, {})
    failing = {path: 30 for path in grid() if "storage_cluster/s3" in path}
    verdict = verdict_on(window_of(grid(), failing, history=[old] * 3))
    assert verdict["suspects"][0]["component"] == "storage_cluster/s3"


def test_a_component_that_history_did_not_know_can_be_blamed() -> None:
    grown = grid() | {(f"compute_cluster/c{i}", "storage_cluster/new"): 100 for i in range(4)}
    failing = {path: 8 for path in grown if "storage_cluster/new" in path}
    verdict = verdict_on(window_of(grown, failing, history=[HEALTHY] * 3))
    assert verdict["suspects"][0]["component"] == "storage_cluster/new"


def test_more_failures_than_units_do_not_crash() -> None:
    failing = {path: 500 for path in grid() if "storage_cluster/s1" in path}
    verdict = verdict_on(window_of(grid(), failing, history=[HEALTHY] * 3))
    assert verdict["suspects"][0]["component"] == "storage_cluster/s1"


small = st.dictionaries(
    st.tuples(st.sampled_from(["tor/a", "tor/b", "tor/c"]), st.sampled_from(["s/x", "s/y", "t/z"])),
    st.integers(0, 50),
    max_size=9,
)


@pytest.mark.simulated
@given(small, st.data(), st.sampled_from(METHODS), st.booleans())
def test_any_small_window_gets_a_verdict(
    placed: dict[tuple[str, ...], int], data: Any, method: str, with_past: bool
) -> None:
    failing = {path: data.draw(st.integers(0, units)) for path, units in placed.items()}
    past = [window_of(placed, {})] if with_past else []
    verdict = verdict_on(window_of(placed, failing, history=past), method=method)
    assert verdict["status"] in ("named", "quiet", "inconclusive")


@pytest.mark.simulated
def test_clumps_of_history_teach_caution_where_hosts_are_unknown() -> None:
    accused = sum(bool(verdict_on(struck(seed, hosts=False))["suspects"]) for seed in range(40, 52))
    assert accused <= 2
