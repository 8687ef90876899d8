"""Voting and NetBouncer on windows that break what they take for granted."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.netbouncer import ANALYZER as NETBOUNCER
from analyzers.builtin.voting import ANALYZER as VOTING
from analyzers.contract import Paths, Sums, Window
from analyzers.runner import judge
from analyzers.simulators.bounces import Bounced, bounce
from analyzers.simulators.fabric import Losses, Shape, build
from analyzers.simulators.tables import paths_of
from analyzers.simulators.voting import Cut, Fault, Load, cut, draw_fault, draw_traffic, run
from tests.unit.analyzers.netbouncer.test_netbouncer import window
from tests.worlds import voting_drawn
from tests.worlds.voting import make

pytestmark = pytest.mark.simulated

FABRIC = build(Shape(pods=2, tors=8, t1s=4, t2s=4, hosts=10))


def only_failing(seed: int, bad: int, traced: float = 0.0, rows_without_path: bool = False) -> Cut:
    """A window in which failing flows and a share of the others name their path; the others have no row, or one
    without a path.
    """
    rng = np.random.default_rng([seed, bad])
    traffic = draw_traffic(FABRIC, rng, Load(flows=60))
    fault = draw_fault(FABRIC, rng, bad, 2e-3, 1e-2) if bad else Fault()
    losses = run(traffic, rng, 1e-6, fault)
    kept = (losses.lost > 0) | (rng.random(len(traffic)) < traced)
    number = np.cumsum(kept) - 1
    known = Losses(losses.lost[kept], number[losses.flow], losses.link, losses.packets)
    made = cut(traffic.only(kept), known, fault)
    if not rows_without_path:
        return made
    sums = made.window.sums["paths"]
    hops = sums.keys["hops"]
    assert isinstance(hops, Paths)
    more = Sums(
        {
            "hops": Paths(hops.names, np.concatenate([[0], hops.indptr]), hops.indices),
            "layer": ("underlay",) * (sums.rows + 1),
        },
        {
            "sent": np.concatenate([[traffic.sent[~kept].sum()], sums.values["sent"]]),
            "lost": np.concatenate([[0], sums.values["lost"]]),
        },
        sums.rows + 1,
    )
    return replace(made, window=replace(made.window, sums={**made.window.sums, "paths": more}))


def unmet(verdict: dict[str, Any]) -> set[str]:
    return {one["name"] for one in verdict["assumptions"] if not one["holds"]}


@pytest.mark.parametrize(("bad", "low", "high"), [(14, 2e-3, 2e-2)])
def test_many_bad_links_do_not_pass_for_the_noise_of_their_peers(bad: int, low: float, high: float) -> None:
    rng = np.random.default_rng([1, bad])
    traffic = draw_traffic(FABRIC, rng, Load(flows=60))
    fault = draw_fault(FABRIC, rng, bad, low, high)
    made = cut(traffic, run(traffic, rng, 1e-6, fault), fault)
    verdict = judge(VOTING, made.window, {})
    assert {one["component"] for one in verdict["suspects"]} == set(made.bad)
    assert unmet(verdict) == set()


def test_bad_switches_are_named_and_not_the_hosts_behind_them_where_only_failing_flows_name_their_path() -> (
    None
):
    world = make(100, "switches_failing")
    for one in world.windows(VOTING):
        named = {suspect["component"] for suspect in judge(VOTING, one, {})["suspects"]}
        assert named == {fault.component for fault in world.faults_between(one.start, one.end)}


def test_long_flows_over_known_paths_are_not_taken_for_a_biased_sample() -> None:
    """Most packets are of failing flows, although all flows are there, if flows are long and much is lost."""
    rng = np.random.default_rng(11)
    traffic = draw_traffic(FABRIC, rng, Load(flows=25))
    traffic = replace(
        traffic, sent=np.minimum(10 * (1 + rng.pareto(1.1, len(traffic))), 20_000).astype(np.int64)
    )
    losses = run(traffic, rng, 4e-3, Fault())
    assert "sampling" not in unmet(judge(VOTING, cut(traffic, losses, Fault()).window, {}))


@pytest.mark.parametrize("rows_without_path", [False, True])
@pytest.mark.parametrize("traced", [0.0, 0.005])
@pytest.mark.parametrize("bad", [1, 6, 14])
def test_bad_links_are_named_where_only_failing_flows_name_their_path(
    bad: int, traced: float, rows_without_path: bool
) -> None:
    made = only_failing(3, bad, traced, rows_without_path)
    verdict = judge(VOTING, made.window, {})
    assert {one["component"] for one in verdict["suspects"]} == set(made.bad)
    assert unmet(verdict) == {"sampling"}


@pytest.mark.parametrize("rows_without_path", [False, True])
def test_nobody_is_named_where_failing_flows_failed_by_chance(rows_without_path: bool) -> None:
    verdict = judge(VOTING, only_failing(4, 0, 0.005, rows_without_path).window, {})
    assert verdict["suspects"] == []


@pytest.mark.parametrize("case", ["noisy_failing", "noisy_untraced"])
def test_busy_links_are_not_accused_where_good_links_lose_much_and_only_failing_flows_name_their_path(
    case: str,
) -> None:
    """The busiest healthy links fail as many flows as a bad one, if healthy links lose a packet in a thousand."""
    (_, first, *_) = make(5100, case).windows(VOTING)
    verdict = judge(VOTING, first, {})
    assert verdict["suspects"] == []
    assert verdict["status"] == "inconclusive"
    assert "Needed: the paths of flows without a loss" in verdict["reason"]
    assert unmet(verdict) == {"sampling", "noise"}


@pytest.mark.parametrize("seed", [111011, 410029])
def test_links_that_stand_out_without_a_gap_are_not_accused_where_only_failing_flows_name_their_path(
    seed: int,
) -> None:
    """Nine to thirteen congested links have some times the failing flows of their peers, and no gap lies below them."""
    for each in make(seed, "congestion_failing").windows(VOTING):
        verdict = judge(VOTING, each)
        assert verdict["suspects"] == []
        if "sampling" in unmet(verdict) and each.sums["failing"].rows > 100:
            assert verdict["status"] == "inconclusive"
            assert "noise" in unmet(verdict)
            assert "Needed: the paths of flows without a loss" in verdict["reason"]


def test_one_bad_link_is_named_though_most_of_some_hundred_failing_flows_are_not_its_own() -> None:
    world = voting_drawn.make(5300, "bad1_failing")
    for each in world.windows(VOTING):
        verdict = judge(VOTING, each)
        faults = {fault.component for fault in world.faults_between(each.start, each.end)}
        assert {one["component"] for one in verdict["suspects"]} == faults
        assert not faults or verdict["suspects"][0]["score"] < 0.9
        assert "noise" in unmet(verdict)


@pytest.mark.parametrize("seed", [11005, 11007])
def test_losses_that_come_several_at_once_do_not_pass_for_a_fair_sample(seed: int) -> None:
    """Some 30 failing flows that lost two packets each: flows that lost one are hardly missing, those that lost none
    are."""
    *_, last = voting_drawn.make(seed, "bad1_failing").windows(VOTING)
    (fault,) = voting_drawn.make(seed, "bad1_failing").faults_between(last.start, last.end)
    verdict = judge(VOTING, last, {})
    assert {one["component"] for one in verdict["suspects"]} == {fault.component}
    assert "sampling" in unmet(verdict)


def test_a_suspect_has_no_loss_rate_where_what_it_carried_is_not_known() -> None:
    (suspect,) = judge(VOTING, only_failing(3, 1).window, {})["suspects"]
    assert suspect["estimate"] is None


def test_components_that_lose_unequally_in_health_are_hardly_accused_and_never_surely() -> None:
    rng = np.random.default_rng(5)
    traffic = draw_traffic(FABRIC, rng, Load(flows=30))
    loss = rng.exponential(1e-3, len(FABRIC.links))
    losses = run(traffic, rng, 0.0, Fault(np.arange(len(loss)), loss))
    verdict = judge(VOTING, cut(traffic, losses, Fault()).window, {})
    assert unmet(verdict) == {"noise"}
    assert len(verdict["suspects"]) <= 1
    assert all(one["score"] < 0.95 for one in verdict["suspects"])


def from_above_the_rack(one: Bounced, rows: np.ndarray[Any, np.dtype[np.int64]], lost: Any) -> Window:
    """Probes whose hops begin at the rack switch, so that no hop stands for the prober."""
    links = one.fabric.links
    hops = [[links[link] for link in one.routes[row]][1:] for row in rows.tolist()]
    src = ["host/" + links[one.routes[row][0]].partition("/")[2].split("~")[0] for row in rows.tolist()]
    keys: dict[str, Any] = {
        "layer": ("underlay",) * len(rows), "hops": paths_of(hops), "src": tuple(src)
    }  # fmt: skip
    return window(Sums(keys, {"sent": one.sent[rows], "lost": np.asarray(lost)[rows]}, len(rows)))


def test_a_prober_that_loses_its_probes_itself_is_named_and_not_its_uplinks() -> None:
    rng = np.random.default_rng(6)
    one = bounce(8, 0, rng)
    first = one.routes.padded()[:, 0]
    lost = np.where(first == first[0], rng.binomial(one.sent, 0.1), one.losses.lost)
    verdict = judge(NETBOUNCER, from_above_the_rack(one, np.arange(len(lost)), lost), {})
    assert [one["component"] for one in verdict["suspects"]] == ["host/p1-t1-h1"]


@pytest.mark.parametrize("seed", range(2))
def test_bursts_on_paths_accuse_nobody_and_are_not_passed_over(seed: int) -> None:
    rng = np.random.default_rng([seed, 7])
    one = bounce(8, 0, rng, probes=20).with_bursts(0.08, rng)
    verdict = judge(NETBOUNCER, from_above_the_rack(one, np.arange(len(one.routes)), one.losses.lost), {})
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
    assert "noise" in unmet(verdict)


@pytest.mark.parametrize("seed", range(2))
def test_bursts_accuse_nobody_where_half_of_the_rows_are_missing(seed: int) -> None:
    rng = np.random.default_rng([seed, 8])
    one = bounce(8, 0, rng).with_bursts(0.01, rng)
    rows = np.flatnonzero(rng.random(len(one.routes)) < 0.5)
    assert judge(NETBOUNCER, from_above_the_rack(one, rows, one.losses.lost), {})["suspects"] == []


def test_two_links_are_named_and_not_all_links_that_share_their_paths() -> None:
    """A switch with two links upwards, both lossy: all its links downwards look lossy too."""
    sets = [(f"link/t{t}~a", f"link/a~k{k}") for t in range(5) for k in range(2) for _ in range(3)]
    other = [(f"link/t{t}~b", f"link/b~k{k}") for t in range(5) for k in range(4) for _ in range(3)]
    src = [f"host/t{t}h{h}" for t in range(5) for _ in range(2) for h in range(3)]
    src += [f"host/t{t}h{h}" for t in range(5) for _ in range(4) for h in range(3)]
    order = sorted(range(len(src)), key=lambda i: ([*sets, *other][i], src[i]))
    both = [*sets, *other]
    rng = np.random.default_rng(9)
    lost = [int(rng.binomial(100, 0.07)) if "~a" in both[i][0] else 0 for i in order]
    keys: dict[str, Any] = {
        "layer": ("underlay",) * len(src),
        "hops": paths_of([both[i] for i in order]),
        "src": tuple(src[i] for i in order),
    }
    verdict = judge(
        NETBOUNCER, window(Sums(keys, {"sent": np.full(len(src), 100), "lost": np.array(lost)}, len(src))), {}
    )
    assert {one["component"] for one in verdict["suspects"]} == {"link/a~k0", "link/a~k1"}


@pytest.mark.parametrize("case", ["dead6_failing", "deadswitches_failing"])
def test_several_that_lose_everything_are_named_where_only_failing_flows_name_their_path(case: str) -> None:
    world = voting_drawn.make(75004, case)
    *_, last = world.windows(VOTING)
    named = {one["component"] for one in judge(VOTING, last, {})["suspects"]}
    faults = world.faults_between(last.start, last.end)
    assert len(faults) == len(named) > 1
    assert all(named & {one.component, *one.acceptable} for one in faults)


@pytest.mark.parametrize(
    ("seed", "case"), [(75004, "down_all"), (75004, "down_failing"), (77001, "down_failing")]
)
def test_where_every_flow_loses_everything_nobody_is_named(seed: int, case: str) -> None:
    """Dozens stand out in the last of them."""
    *_, last = voting_drawn.make(seed, case).windows(VOTING)
    verdict = judge(VOTING, last, {})
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
