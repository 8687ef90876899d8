"""NetBouncer: the descent against slow references, and what it names in small Clos networks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.netbouncer import ANALYZER
from analyzers.builtin.netbouncer.stages import Problem, coloured, objective, success
from analyzers.contract import Sums, Window
from analyzers.runner import judge
from analyzers.simulators.bounces import Bounced, bounce, sums_of
from analyzers.testing import Case, check_analyzer, paths_of
from tests.benchmarks.worlds import Job, Judged, judge_one
from tests.worlds.netbouncer import make

START = datetime(2026, 1, 5, tzinfo=UTC)


def window(sums: Sums) -> Window:
    return Window(START, START + timedelta(minutes=5), "synthetic", "probe", {"paths": sums})


def epoch(seed: int, bad: int, low: float = 0.02, high: float = 1.0) -> Bounced:
    return bounce(4, bad, np.random.default_rng(seed), low, high)


def case(seed: int, faulty: bool) -> Case:
    one = epoch(seed, int(faulty), 0.1, 0.6)
    return Case(window(sums_of(one)), one.bad)


def of(sets: Sequence[tuple[str, ...]], sent: list[int], lost: list[int]) -> Window:
    keys: dict[str, Any] = {"layer": ("underlay",) * len(sets), "hops": paths_of(sets)}
    return window(Sums(keys, {"sent": np.array(sent), "lost": np.array(lost)}, len(sets)))


def named(seen: Window, **params: object) -> dict[str, dict[str, object]]:
    return {one["component"]: one for one in judge(ANALYZER, seen, params)["suspects"]}


@pytest.mark.simulated
def test_it_is_a_good_analyzer() -> None:
    check_analyzer(ANALYZER, case)


def problem(seed: int) -> Problem:
    rng = np.random.default_rng(seed)
    row = np.repeat(np.arange(12), 2)
    column = np.concatenate([rng.choice(6, 2, replace=False) for _ in range(12)]).astype(np.int64)
    return Problem(row, column, rng.uniform(0.2, 1, 12), rng.uniform(0, 6, 6))


def slow_success(given: Problem, colour: np.ndarray) -> np.ndarray:
    """Link by link, in the order of the colours, by trying a fine grid of values."""
    links = len(given.penalty)
    crossing = [np.flatnonzero(given.column == link) for link in range(links)]
    x = np.array([given.share[given.row[entries]].mean() for entries in crossing])
    grid = np.linspace(0, 1, 501)
    for _ in range(100):
        before = objective(given, x)
        for link in sorted(range(links), key=lambda one: (colour[one], one)):
            tried = [objective(given, np.where(np.arange(links) == link, value, x)) for value in grid]
            x[link] = grid[int(np.argmin(tried))]
        if before - objective(given, x) < 1e-6:
            break
    return x


@pytest.mark.simulated
@pytest.mark.parametrize("seed", range(3))
def test_the_descent_agrees_with_trying_every_value(seed: int) -> None:
    given = problem(seed)
    colour = coloured(given)
    assert np.abs(success(given, colour) - slow_success(given, colour)).max() < 4e-3


@pytest.mark.parametrize("seed", range(3))
def test_no_path_crosses_two_links_of_one_colour(seed: int) -> None:
    given = problem(seed)
    colour = coloured(given)
    for path in range(12):
        mine = colour[np.unique(given.column[given.row == path])]
        assert len(set(mine.tolist())) == len(mine)


def test_a_link_that_explains_what_several_would_is_named_in_their_place() -> None:
    one = epoch(3, 0)
    first = one.fabric.links[0]  # all paths of one host pass it
    over = one.routes.crossing([0], len(one.fabric.links))
    losses = replace(one.losses, lost=np.where(over, 30, one.losses.lost))
    assert set(named(window(sums_of(replace(one, losses=losses))))) == {first}


def lossy(one: Bounced, lost: dict[int, int]) -> Window:
    """The epoch with so many probes lost on the paths of those numbers."""
    counts = np.zeros(len(one.routes), dtype=np.int64)
    for path, count in lost.items():
        counts[path] = count
    return window(sums_of(replace(one, losses=replace(one.losses, lost=counts))))


def test_two_links_that_explain_what_more_would_are_named_in_their_place() -> None:
    """Both servers of a rack lose half of everything: so it would look if all uplinks of the rack did."""
    uplinks = [f"link/t1~a{i}" for i in range(4)]
    lossy = [(f"link/h{server}~t1", uplink) for server in (1, 2) for uplink in uplinks]
    clean = [(f"link/h{server}~t2", f"link/t2~a{i}") for server in (3, 4) for i in range(8)]
    lost = [51, 49, 52, 50, 53, 52, 51, 54]
    seen = of([*lossy, *clean], [100] * 24, [*lost, *[0] * 16])
    assert set(named(seen)) == {"link/h1~t1", "link/h2~t1"}


def test_a_burst_on_one_path_accuses_nobody() -> None:
    assert named(lossy(epoch(4, 0), {7: 20})) == {}


def test_a_small_loss_is_seen_beside_a_bad_link_that_shares_a_path() -> None:
    one = epoch(4, 0)
    links = one.fabric.links
    small = next(link for link in range(len(links)) if links[link] == "link/p1-a1~c1")
    dead = next(link for link in range(len(links)) if links[link] == "link/p1-t1-h1~p1-t1")
    on_small, on_dead = (one.routes.crossing([link], len(links)) for link in (small, dead))
    lost = np.where(on_dead, 80, np.where(on_small, 3, 0))
    seen = window(sums_of(replace(one, losses=replace(one.losses, lost=lost))))
    assert set(named(seen, min_loss=0.05)) >= {links[dead]}
    assert set(named(seen)) >= {links[dead], links[small]}


def test_noise_that_loses_a_probe_of_a_few_paths_accuses_nobody() -> None:
    rng = np.random.default_rng(5)
    noisy = bounce(4, 0, rng, noise=1e-3)
    assert named(window(sums_of(noisy))) == {}


def test_more_evidence_is_a_higher_score() -> None:
    one = epoch(4, 0)
    over = np.flatnonzero(one.routes.crossing([0], len(one.fabric.links))).tolist()
    faint, plain = (lossy(one, dict.fromkeys(over, lost)) for lost in (2, 30))
    (little,), (much,) = (judge(ANALYZER, seen, {})["suspects"][:1] for seen in (faint, plain))
    assert 0 < little["score"] <= much["score"] < 1


def test_a_doubtful_link_is_named_beside_many_bad_ones_and_not_alone() -> None:
    sets = [(f"link/{i}",) for i in range(40)]
    alone = [2] + [0] * 39
    assert named(of(sets, [100] * 40, alone)) == {}
    beside = named(of(sets, [100] * 40, [2] + [60] * 6 + [0] * 33))
    assert set(beside) == {f"link/{i}" for i in range(7)}
    assert float(str(beside["link/0"]["score"])) < float(str(beside["link/1"]["score"]))


def test_a_device_without_a_clean_path_is_named_and_not_its_links() -> None:
    sets = [(f"link/{a}~x", "switch/x", f"link/x~{b}") for a in "abc" for b in "def"]
    sets += [(f"link/{a}~y", "switch/y", f"link/y~{b}") for a in "abc" for b in "def"]
    lost = [40] * 9 + [0] * 9
    assert set(named(of(sets, [100] * 18, lost))) == {"switch/x"}


def test_links_that_no_path_tells_apart_are_one_entry() -> None:
    sets = [("link/a", "link/b"), ("link/c", "link/d"), ("link/c", "link/e")]
    found = named(of(sets, [200] * 3, [60, 0, 0]))
    assert [(name, one["ambiguous_with"]) for name, one in found.items()] == [("link/a", ["link/b"])]


def test_a_loss_below_the_noise_of_all_others_is_nobodys() -> None:
    sets = [(f"link/{i}",) for i in range(40)]
    assert named(of(sets, [1000] * 40, [3 + i % 3 for i in range(40)])) == {}


@pytest.mark.parametrize(
    ("sets", "sent", "lost", "reason"),
    [
        ([], [], [], "no probe names its path"),
        ([("link/a", "link/b")], [100], [50], "took one path"),
        ([(f"link/{i}",) for i in range(6)], [100] * 6, [90, 80, 70, 90, 85, 60], "nothing healthy"),
    ],
)
def test_it_says_when_it_cannot_say(
    sets: list[tuple[str, ...]], sent: list[int], lost: list[int], reason: str
) -> None:
    verdict = judge(ANALYZER, of(sets, sent, lost), {})
    assert verdict["status"] == "inconclusive"
    assert reason in verdict["reason"]


@pytest.mark.parametrize(("late", "last"), [(1, "01:00"), (5, "05:00")])
def test_what_is_usual_after_a_repair_does_not_make_the_failure_last(late: int, last: str) -> None:
    sets = [("link/a", "link/x"), ("link/a", "link/y"), *((f"link/{n}", "link/z") for n in range(20))]
    lost = [100, 100 + late, *([1] * 20)]
    seen = of(sets, [2000] * len(sets), lost)
    rows = [0, 1, *range(2, 22), 1]
    at = np.array([1, 1, *([4] * 20), 9])
    told = Sums(
        {"hops": paths_of([sets[row] for row in rows]), "layer": ("underlay",) * len(rows), "slice": at},
        {"failures": np.array([100, 100, *([1] * 20), late])},
        len(rows),
    )
    suspect = named(replace(seen, sums={**seen.sums, "over_time": told}))["link/a"]
    assert suspect["first_failure"] == "2026-01-05T00:00:30Z"
    assert suspect["last_failure"] == f"2026-01-05T00:{last}Z"


def test_a_repaired_link_does_not_fail_with_one_beside_it() -> None:
    sets = [
        *((f"link/{one}", f"link/{n}") for one in "ab" for n in range(3)),
        ("link/a", "link/b"),
        *((f"link/{n}", "link/z") for n in range(20)),
    ]
    lost = [*([100] * 6), 200, *([0] * 20)]
    rows = [*range(7), 6]
    told = Sums(
        {
            "hops": paths_of([sets[row] for row in rows]),
            "layer": ("underlay",) * len(rows),
            "slice": np.array([1, 1, 1, 9, 9, 9, 1, 9]),
        },
        {"failures": np.full(len(rows), 100)},
        len(rows),
    )
    seen = of(sets, [2000] * len(sets), lost)
    suspects = named(replace(seen, sums={**seen.sums, "over_time": told}))
    ends = {name: suspects[name]["last_failure"] for name in ("link/a", "link/b")}
    assert ends == {"link/a": "2026-01-05T00:01:00Z", "link/b": "2026-01-05T00:05:00Z"}


def test_probes_of_the_other_layer_are_left_out() -> None:
    seen = of([("link/a",), ("link/b",), ("link/c",)], [100] * 3, [50, 0, 0])
    sums = seen.sums["paths"]
    overlay = replace(sums, keys={**sums.keys, "layer": ("overlay", "underlay", "underlay")})
    assert named(window(overlay)) == {}
    assert named(of([("link/a",), ("link/b",), ("link/c",)], [100] * 3, [50, 0, 0])).keys() == {"link/a"}


@pytest.mark.simulated
def test_bursts_missing_rows_and_probers_that_lose_probes_hardly_ever_accuse_another_component() -> None:
    """Worlds of the second generator: one false suspect of a hundred, one missed fault of two hundred."""
    planted, found, right, wrong = 0, 0, 0, 0
    cases = ("bursts", "bursts_healthy", "missing", "missing_healthy", "prober", "prober_and_links")
    for world in (make(seed, case) for case in cases for seed in range(71, 74)):
        for one in world.windows(ANALYZER):
            faults = world.faults_between(one.start, one.end)
            at_fault = [{fault.component, *fault.acceptable} for fault in faults]
            suspects = judge(ANALYZER, one, {})["suspects"]
            entries = [{each["component"], *each["ambiguous_with"]} for each in suspects]
            hits = [any(entry & group for group in at_fault) for entry in entries]
            right, wrong = right + sum(hits), wrong + len(hits) - sum(hits)
            planted += len(faults)
            found += sum(any(entry & group for entry in entries) for group in at_fault)
    assert planted >= 150
    assert wrong <= 0.01 * (right + wrong)
    assert planted - found <= 0.005 * planted


UNEVEN = (("noisy", 500), ("noisy", 501), ("noisy", 502), ("noisy", 503), ("links_5pct", 500))
"""Worlds of faulty links beside good ones that lose up to 4e-4, unevenly, and of a twentieth of all links faulty."""


@pytest.mark.simulated
def test_of_the_named_at_most_one_in_a_hundred_is_innocent_and_one_in_two_hundred_is_missed() -> None:
    every = Judged()
    for world, seed in UNEVEN:
        every = every.plus(judge_one(Job("netbouncer", world, seed, "analyzers.builtin.netbouncer:ANALYZER")))
    false = every.faulty.false + every.healthy.false
    named, there = every.faulty.found + false, every.faulty.found + every.faulty.missed
    assert there > 100
    assert false <= 0.01 * named
    assert every.faulty.missed <= 0.005 * there
