"""Deepview on a history that is not healthy, and on rows that are not as it assumes."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import product
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.deepview.binomial import CAPS
from analyzers.contract import Window
from tests.unit.analyzers.deepview.cases import grid, verdict_on, window_of
from tests.unit.analyzers.deepview.regions import Region, named, verdicts

pytestmark = pytest.mark.simulated

OUT: Mapping[str, float] = {"storage_cluster/s5": 1.0}
CALM = 12


def half_of_the_racks(uneven: int, of_one_cluster: int | None = None) -> Window:
    """The first hour of eight racks and six storage clusters: paths of every other rack fail `uneven` attempts of 400,
    the others none, those of the second cluster `of_one_cluster` instead.
    """
    failing: dict[tuple[str, ...], int] = {}
    for t, s in product(range(8), range(6)):
        usual = uneven * (t % 2)
        failing[f"storage_cluster/s{s}", f"tor/t{t}"] = (
            usual if s != 1 or of_one_cluster is None else of_one_cluster
        )
    told = {path: count for path, count in failing.items() if count}
    return window_of(dict.fromkeys(failing, 400), told, "path_outcome")


def unmet(verdict: Mapping[str, Any]) -> set[str]:
    return {one["name"] for one in verdict["assumptions"] if not one["holds"]}


def test_a_total_outage_is_named_in_each_of_its_24_hours() -> None:
    region = Region(1)
    hours = [region.hour(at, OUT if at >= CALM else {}) for at in range(CALM + 24)]
    assert [named(one) for one in verdicts(hours, 24)] == [set(OUT)] * 24


def test_an_outage_without_a_calm_hour_before_it_is_named() -> None:
    region = Region(2)
    assert [named(one) for one in verdicts([region.hour(at, OUT) for at in range(15)], 12)] == [set(OUT)] * 12


@pytest.mark.parametrize("before", [3, 6, 12])
def test_different_outages_before_it_do_not_silence_an_outage(before: int) -> None:
    found = 0
    for seed in range(3):
        region = Region(10 + seed)
        culprits = region.rng.permutation([name for name in region.names if "t2" not in name]).tolist()
        struck = region.rng.permutation(CALM)[:before].tolist()
        hours = [region.hour(at, {culprits.pop(): 1.0} if at in struck else {}) for at in range(CALM)]
        culprit = culprits.pop()
        found += named(verdicts([*hours, region.hour(CALM, {culprit: 1.0})], 1)[0]) == {culprit}
    assert found == 3


@pytest.mark.parametrize(("share", "status"), [(0.04, "inconclusive"), (0.2, "named"), (1.0, "named")])
def test_a_failure_as_old_as_the_history_is_no_certain_fault_unless_much_fails(
    share: float, status: str
) -> None:
    region = Region(5)
    verdict = verdicts([region.hour(at, {"storage_cluster/s5": share}) for at in range(CALM + 1)], 1)[0]
    assert verdict["status"] == status
    assert "history" in unmet(verdict)
    assert "storage_cluster/s5" in (verdict["reason"] or named(verdict))
    assert all((one["score"] <= 0.5) is (share < 0.25) for one in verdict["suspects"])


CALLS = {
    "site": ("flags", "shop", "pets", "steps"), "shop": ("store",), "pets": ("stock", "store"),
    "steps": ("high", "low", "read"), "high": ("flags",), "low": ("flags",), "read": ("store",),
    "flags": (), "store": (), "stock": (),
}  # fmt: skip
CALLED = {"site": 490, "shop": 700, "pets": 900, "flags": 2, "store": 800, "stock": 100}


def called_by(service: str) -> set[str]:
    return {service}.union(*(called_by(one) for one in CALLS[service]))


def calls(
    rng: np.random.Generator, history: Sequence[Window] = (), faults: Mapping[str, float] | None = None
) -> Window:
    """Calls of the services of a shop, a path each with all services that it calls. `high` always fails, `low` in some
    windows, and `steps` with them: one failure is in several rows.
    """
    steps = int(rng.integers(8, 20))
    high = int(rng.binomial(steps, 0.5))
    low = int(rng.binomial(steps - high, rng.choice([0.1, 0.9], p=[0.7, 0.3])))
    tried = {one: int(rng.poisson(CALLED.get(one, 0))) for one in CALLS}
    tried |= {"steps": steps, "read": steps, "high": high, "low": steps - high}
    failed = {"high": high, "low": low, "steps": int(0.6 * high) + low}
    placed, told = {}, {}
    for service, attempts in tried.items():
        path = tuple(sorted(f"service/{one}" for one in called_by(service)))
        rate = 1e-3 * (service in ("site", "shop", "pets")) + (faults or {}).get(service, 0.0)
        failures = failed.get(service, 0)
        placed[path] = attempts
        told[path] = failures + int(rng.binomial(attempts - failures, rate))
    placed = {path: count for path, count in placed.items() if count}
    told = {path: count for path, count in told.items() if count}
    return window_of(placed, told, "path_outcome", history=history)


def test_a_failure_that_stands_out_under_other_names_in_the_history_is_as_old_as_the_history() -> None:
    blamed = 0
    for seed in (1, 10):
        rng = np.random.default_rng(seed)
        past = [calls(rng) for _ in range(CALM)]
        for _ in range(CALM):
            window = calls(rng, past[-CALM:])
            blamed += len(verdict_on(window)["suspects"])
            past.append(replace(window, history=()))
    assert blamed == 0


def test_beside_a_failure_under_many_names_a_new_one_is_named() -> None:
    rng = np.random.default_rng(100)
    past = [calls(rng) for _ in range(CALM)]
    assert named(verdict_on(calls(rng, past, {"shop": 0.08}))) == {"service/shop"}


def test_a_small_failure_that_began_in_the_history_is_named() -> None:
    region = Region(6)
    hours = [region.hour(at, {"storage_cluster/s5": 0.04} if at >= 5 else {}) for at in range(CALM + 1)]
    suspects = verdicts(hours, 1)[0]["suspects"]
    assert [one["component"] for one in suspects] == ["storage_cluster/s5"]
    assert suspects[0]["score"] > 0.9


def test_where_others_stood_out_in_all_of_the_history_nobody_is_certain() -> None:
    region = Region(7)
    names = region.rng.permutation([name for name in region.names if "t2" not in name]).tolist()
    hours = [region.hour(at, {names[at]: 0.05}) for at in range(CALM + 1)]
    verdict = verdicts(hours, 1)[0]
    assert named(verdict) == {names[CALM]}
    assert verdict["suspects"][0]["score"] <= 0.5
    assert "history" in unmet(verdict)


def test_a_suspect_that_may_be_a_habit_is_ranked_below_one_that_is_none() -> None:
    region = Region(7)
    load = {name: region.size[[name in path for path in region.paths]].sum() for name in region.names}
    *others, large = sorted((name for name in region.names if "t2" not in name), key=load.__getitem__)
    small = next(name for name in others if name.split("/")[0] != large.split("/")[0])
    rest = [name for name in others if name != small]
    hours = [region.hour(at, {rest[at]: 0.05}) for at in range(CALM)]
    verdict = verdicts([*hours, region.hour(CALM, {large: 0.2, small: 0.4})], 1)[0]
    assert [(one["component"], one["score"] > 0.5) for one in verdict["suspects"]] == [
        (small, True),
        (large, False),
    ]


def test_with_half_of_the_hours_faulty_faults_are_found_and_calm_hours_are_quiet() -> None:
    right, wrong, missed = 0, 0, 0
    for seed in range(2):
        region = Region(20 + seed)
        truth: list[dict[str, float]] = []
        for _ in range(CALM + 12):
            faulty = region.rng.random() < 0.5
            culprit = str(region.rng.choice(region.names))
            truth.append({culprit: float(region.rng.choice([1.0, 0.2, 0.03]))} if faulty else {})
        hours = [region.hour(at, faults) for at, faults in enumerate(truth)]
        for faults, verdict in zip(truth[CALM:], verdicts(hours, 12), strict=True):
            right += len(named(verdict) & set(faults))
            wrong += len(named(verdict) - set(faults))
            missed += len(set(faults) - named(verdict))
    assert 2 * right / (2 * right + wrong + missed) >= 0.95


def test_a_partial_failure_in_every_hour_before_does_not_hide_a_smaller_one() -> None:
    found = 0
    for seed in range(30, 33):
        region = Region(seed, attempts=80.0, uneven=0.1)
        culprits = region.rng.permutation([name for name in region.names if "t2" not in name]).tolist()
        hours = [region.hour(at, {culprits[at]: 0.06}) for at in range(CALM)]
        culprit = culprits[CALM]
        found += named(verdicts([*hours, region.hour(CALM, {culprit: 0.02})], 1)[0]) == {culprit}
    assert found == 3


def test_a_failure_that_is_uneven_over_its_paths_does_not_accuse_what_lies_below_it() -> None:
    right, wrong = 0, 0
    for seed in range(4):
        region = Region(70 + seed)
        hours = [region.hour(at, {}) for at in range(CALM)]
        verdict = verdicts([*hours, region.hour(CALM, {"t2/d0": 0.1}, rough=True)], 1)[0]
        right += "t2/d0" in named(verdict)
        wrong += len(named(verdict) - {"t2/d0"})
    assert (right, wrong) == (4, 0)


@pytest.mark.parametrize("before", [0, CALM])
def test_three_of_five_clusters_are_named_in_the_place_of_what_they_share(before: int) -> None:
    struck = {"compute_cluster/c0": 0.9, "compute_cluster/c4": 0.7, "compute_cluster/c6": 0.6}
    right = 0
    for seed in range(110, 112):
        region = Region(seed)
        hours = [region.hour(at, struck if at == before else {}) for at in range(before + 1)]
        right += named(verdicts(hours, 1)[0]) == set(struck)
    assert right == 2


def test_the_parent_of_few_paths_recorded_wrongly_does_not_accuse_what_lies_below_it() -> None:
    right, wrong = 0, 0
    for seed in range(40, 46):
        region = Region(seed)
        region.misrecord(0.05)
        hours = [region.hour(at, {}) for at in range(CALM)]
        verdict = verdicts([*hours, region.hour(CALM, {"t2/d0": 1.0})], 1)[0]
        right += "t2/d0" in named(verdict)
        wrong += len(named(verdict) - {"t2/d0"})
    assert right == 6
    assert wrong <= 1


@pytest.mark.parametrize(("wrong_parent", "other"), [(True, {}), (False, {"compute_cluster/c1": 0.5})])
def test_a_cluster_that_fails_at_the_rate_of_a_tier_is_named_with_the_tier_in_its_place(
    wrong_parent: bool, other: Mapping[str, float]
) -> None:
    """All paths of c1 pass t2/d0, and no row says so; or c1 has a fault of its own."""
    region = Region(60)
    for at, path in enumerate(region.paths if wrong_parent else ()):
        if "compute_cluster/c1" in path:
            region.paths[at] = tuple(sorted({*path, "t2/d0"}))
            region.recorded[at] = tuple(name for name in path if name != "t2/d0")
    hours = [region.hour(at, {}) for at in range(CALM)]
    verdict = verdicts([*hours, region.hour(CALM, {"t2/d0": 0.1, **other})], 1)[0]
    suspects = {one["component"]: one for one in verdict["suspects"]}
    assert list(suspects) == ["t2/d0", "compute_cluster/c1"]
    assert suspects["t2/d0"]["score"] >= 0.85
    assert suspects["t2/d0"]["ambiguous_with"] == []
    assert suspects["compute_cluster/c1"]["ambiguous_with"] == (["t2/d0"] if wrong_parent else [])
    assert ("topology" in unmet(verdict)) == wrong_parent


@pytest.mark.parametrize(("rate", "uneven", "healthy"), [(1.0, False, 0), (1.0, False, 3), (0.2, True, 0)])
def test_a_cluster_recorded_below_the_wrong_tier_is_no_second_total_or_uneven_failure(
    rate: float, uneven: bool, healthy: int
) -> None:
    """And a few `healthy` paths are recorded below the tier."""
    region = Region(61)
    beside = [
        at for at, path in enumerate(region.paths) if path[0] == "compute_cluster/c3" and "t2/d0" not in path
    ]
    for at in beside[:healthy]:
        region.recorded[at] = tuple(name.replace("t2/d1", "t2/d0") for name in region.recorded[at])
    for at, path in enumerate(region.paths):
        if "compute_cluster/c1" in path:
            region.paths[at] = tuple(sorted({*path, "t2/d0"}))
            region.recorded[at] = tuple(name for name in path if name != "t2/d0")
    hours = [region.hour(at, {}) for at in range(CALM)]
    verdict = verdicts([*hours, region.hour(CALM, {"t2/d0": rate}, rough=uneven)], 1)[0]
    first, *others = verdict["suspects"]
    assert (first["component"], first["ambiguous_with"]) == ("t2/d0", [])
    assert [(one["component"], one["ambiguous_with"]) for one in others] == [
        ("compute_cluster/c1", ["t2/d0"])
    ]
    assert not others[0]["sure"]
    assert first["score"] <= CAPS["topology"]
    assert "topology" in unmet(verdict)


def test_all_racks_of_a_cluster_that_fail_are_one_suspect_with_the_cluster() -> None:
    """Three racks fail a twentieth, and where a failing storage cluster is passed no more than it explains."""
    tried: dict[tuple[str, ...], int] = {
        (f"compute_cluster/c{t // 3}", f"storage_cluster/s{s}", f"tor/t{t}"): 400 if s else 4_000
        for t, s in product(range(36), range(10))
    }
    lost = {path: 400 for path in tried if "storage_cluster/s0" in path}
    lost |= {path: 20 for path in tried if "compute_cluster/c0" in path and path not in lost}
    calm = [
        window_of(tried, dict.fromkeys(list(tried)[hour % 2 :: 2], 1), "path_outcome") for hour in range(6)
    ]
    verdict = verdict_on(window_of(tried, lost, "path_outcome", history=calm))
    assert {one["component"]: one["ambiguous_with"] for one in verdict["suspects"]} == {
        "storage_cluster/s0": [],
        "compute_cluster/c0": ["tor/t0", "tor/t1", "tor/t2"],
    }


def test_wrong_records_do_not_hide_that_the_racks_are_the_whole_cluster() -> None:
    """Its two racks fail all; of the paths that name it or them seven are others', recorded wrongly."""
    tried: dict[tuple[str, ...], int] = {
        (f"compute_cluster/c{t // 2}", f"storage_cluster/s{s}", f"tor/t{t}"): 40
        for t, s in product(range(24), range(8))
    }
    lost = {path: 40 for path in tried if "compute_cluster/c0" in path}
    for s in range(5):
        tried["compute_cluster/c0", f"storage_cluster/s{s}", f"tor/t{s + 9}"] = 200
    for s in range(2):
        tried[f"compute_cluster/c{s + 3}", f"storage_cluster/s{s}", "tor/t0"] = 40
    calm = [
        window_of(tried, dict.fromkeys(list(tried)[hour % 2 :: 2], 1), "path_outcome") for hour in range(6)
    ]
    verdict = verdict_on(window_of(tried, lost, "path_outcome", history=calm))
    assert {one["component"]: one["ambiguous_with"] for one in verdict["suspects"]} == {
        "compute_cluster/c0": ["tor/t0", "tor/t1"]
    }
    assert "topology" in unmet(verdict)


def test_components_that_are_recorded_wrongly_cost_neither_innocents_nor_a_false_certainty() -> None:
    right, wrong = 0, 0
    for seed in range(4):
        region = Region(40 + seed)
        region.misrecord(0.05)
        culprit = f"storage_cluster/s{seed}"
        verdict = verdicts(
            [region.hour(at, {culprit: 0.9} if at == CALM else {}) for at in range(CALM + 1)], 1
        )[0]
        right += culprit in named(verdict)
        wrong += len(named(verdict) - {culprit})
        astray = sum(
            (culprit in path) != (culprit in said)
            for path, said in zip(region.paths, region.recorded, strict=True)
        )
        assert ("topology" in unmet(verdict)) == (astray > 0)
    assert (right, wrong) == (4, 0)


def test_where_records_are_wrong_less_is_stated() -> None:
    region = Region(60)
    hours = [region.hour(at, OUT if at == CALM else {}) for at in range(CALM + 1)]
    region = Region(60)
    region.misrecord(0.2)
    astray = [region.hour(at, OUT if at == CALM else {}) for at in range(CALM + 1)]
    right, doubted = verdicts(hours, 1)[0], verdicts(astray, 1)[0]
    assert not unmet(right)
    assert "topology" in unmet(doubted)
    assert doubted["suspects"][0]["score"] < right["suspects"][0]["score"]


def test_rates_that_move_together_seldom_blame_and_never_surely() -> None:
    """Loads of services that swing by heavy tails and drag the failures of all that call them along."""
    accused, stated = 0, 0.0
    for seed in range(2):
        region = Region(70 + seed, uneven=0.5)
        rng = np.random.default_rng(seed)
        swing = dict.fromkeys(region.names, 0.0)
        hours = []
        for at in range(CALM + 10):
            swing = {name: 0.7 * old + 0.25 * float(rng.standard_t(4)) for name, old in swing.items()}
            calm = dict(region.level)
            region.level = {
                name: calm[name] * float(np.exp(np.clip(swing[name], -2, 2))) for name in region.names
            }
            hours.append(region.hour(at, {}))
            region.level = calm
        for verdict in verdicts(hours, 10):
            accused += bool(named(verdict))
            stated = max([stated, *(one["score"] for one in verdict["suspects"])])
    assert accused <= 3  # of 20
    assert stated < 0.95


@pytest.mark.parametrize("shock", [True, False])
def test_failures_that_follow_the_load_of_some_clients_are_no_fault_and_others_are(shock: bool) -> None:
    """Loads of compute clusters swing, and failures with them; at last one fails eight times as often as usual."""
    right = 0
    for seed in range(2):
        region = Region(120 + seed, attempts=1000.0, usual=2e-3)
        clients = [name for name in region.names if name.startswith("compute")]
        hours = []
        for at in range(CALM + 1):
            load = {name: float(np.exp(0.08 * region.rng.standard_t(4))) for name in clients}
            load[clients[0]] = 2.0 if shock and at == CALM else min(load[clients[0]], 1.2)
            fault = {clients[0]: 0.014} if not shock and at == CALM else {}
            hours.append(region.hour(at, fault, load=load))
        verdict = verdicts(hours, 1)[0]
        right += (clients[0] in named(verdict)) is not shock
    assert right == 2


def test_a_load_peak_blames_nobody_and_is_told() -> None:
    region = Region(80)
    hours = [region.hour(at, {}, times=3.0 if at == CALM else 1.0) for at in range(CALM + 1)]
    verdict = verdicts(hours, 1)[0]
    assert not named(verdict)
    assert "noise" in unmet(verdict)


def test_every_verdict_carries_the_four_assumptions() -> None:
    region = Region(90)
    for verdict in verdicts([region.hour(at, {}) for at in range(4)], 4):
        assert [one["name"] for one in verdict["assumptions"]] == ["history", "sampling", "noise", "topology"]


@pytest.mark.parametrize("uneven", [1, 2])
@pytest.mark.parametrize("share", [0.1, 0.15, 0.25])
def test_without_history_a_cluster_is_named_where_half_of_the_racks_fail_more_than_the_others(
    share: float, uneven: int
) -> None:
    assert named(verdict_on(half_of_the_racks(uneven, round(400 * share)))) == {"storage_cluster/s1"}


def test_rows_of_a_single_moment_are_judged_as_those_of_a_minute() -> None:
    window = half_of_the_racks(2, 60)
    moment = replace(window, end=window.start + timedelta(microseconds=1))
    assert named(verdict_on(moment)) == {"storage_cluster/s1"}


@pytest.mark.parametrize("uneven", [1, 2, 3])
def test_without_history_nobody_is_blamed_where_half_of_the_racks_fail_more_than_the_others(
    uneven: int,
) -> None:
    assert not named(verdict_on(half_of_the_racks(uneven)))


def test_without_three_windows_of_history_that_is_told() -> None:
    region = Region(91)
    assert "history" in unmet(verdicts([region.hour(at, {}) for at in range(2)], 1)[0])


def test_rows_of_failures_alone_are_told() -> None:
    region = Region(92)
    hours = [region.hour(at, OUT) for at in range(6)]
    only = [[{**row, "attempts": row["failures"]} for row in rows if row["failures"]] for rows in hours]
    assert "sampling" in unmet(verdicts(only, 1)[0])


@pytest.mark.parametrize(("risen", "expected"), [(1, {"compute_cluster/c1"}), (4, set())])
def test_a_failure_of_less_than_three_times_the_usual_rate_is_named_unless_everything_fails_more(
    risen: int, expected: set[str]
) -> None:
    rng = np.random.default_rng(3)
    placed = grid(units=4000, rows=6, columns=6)

    def hour(times: int, added: int, history: Sequence[Window] = ()) -> Window:
        means = {path: 8 * times + added * times * ("compute_cluster/c1" in path) for path in placed}
        failing = {path: int(rng.poisson(mean)) for path, mean in means.items()}
        return window_of(placed, failing, "path_outcome", history=history)

    past = [hour(1, 0) for _ in range(6)]
    assert named(verdict_on(hour(risen, 14, past))) == expected
