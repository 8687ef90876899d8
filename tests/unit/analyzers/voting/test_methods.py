"""The methods of voting: the likelihood against plain formulas, votes against plain loops."""

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from scipy.stats import poisson

from analyzers.builtin.flows.explain import (
    CEILING,
    Model,
    Rules,
    bounds,
    burst_of,
    bursts_of,
    explain,
    thresholds,
    upper_rate,
)
from analyzers.builtin.flows.observed import Observed, observe
from analyzers.builtin.flows.votes import blamed_by_flow, discounted, majority, votes_of
from analyzers.contract import Paths
from tests.unit.analyzers.voting.cases import Row, simulated, star, window_of

RULES = Rules(margin=1.0, min_loss=5e-5, min_flows=3)


def seen_of(rows: Sequence[Row]) -> Observed:
    return observe(window_of(rows), "underlay")


def named(seen: Observed, components: Sequence[int]) -> list[str]:
    return [seen.paths.names[c] for c in components]


def random_rows(seed: int) -> list[Row]:
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for i in range(40):
        hops = [f"link/{j}" for j in rng.choice(8, 3, replace=False)]
        lost = int(rng.integers(1, 4)) if rng.random() < (0.6 if "link/3" in hops else 0.15) else 0
        rows.append((hops, f"host/{i}", f"host/{i % 7}", 50, lost))
    return rows


def plain_loglik(seen: Observed, bound: float, base: float, theta: dict[int, float]) -> float:
    """Path by path, failed or not, up to the noise of healthy paths; no shared sums."""
    failing, total = seen.failing, 0.0
    for r in range(failing.rows):
        eta = base + sum(theta.get(int(c), 0.0) for c in failing.column[failing.row == r])
        if failing.lost[r] < bound:
            total += failing.lost[r] * math.log(math.expm1(eta))
        else:
            total += poisson.logsf(bound - 1, failing.sent[r] * eta) + failing.sent[r] * eta
    for p in range(seen.paths.paths):
        eta = sum(theta.get(int(c), 0.0) for c in seen.paths.column[seen.paths.row == p])
        total -= seen.paths.attempts[p] * eta
    return total


def bounded(seen: Observed, bound: float) -> Model:
    return Model(seen, np.full(seen.failing.rows, bound))


@pytest.mark.simulated
@pytest.mark.parametrize("bound", [1.0, 2.0, 10.0])
@pytest.mark.parametrize("seed", range(2))
def test_the_best_rate_of_a_component_is_where_the_plain_likelihood_is_highest(
    seed: int, bound: float
) -> None:
    seen, base = seen_of(random_rows(seed)), 2e-3
    eta = np.full(seen.failing.rows, base)
    steps = bounded(seen, bound).steps(eta, np.arange(seen.components))
    for component, theta, gain in zip(steps.component.tolist(), steps.theta, steps.gain, strict=True):

        def loss(x: float, c: int = component) -> float:
            return -plain_loglik(seen, bound, base, {c: x})

        best = minimize_scalar(loss, bounds=(0, 0.3), method="bounded", options={"xatol": 1e-8})
        assert theta == pytest.approx(best.x, abs=1e-5)
        assert gain == pytest.approx(loss(0) - best.fun, abs=1e-4)


@pytest.mark.simulated
@pytest.mark.parametrize("bound", [1.0, 10.0])
def test_the_joint_fit_is_no_worse_than_what_a_general_optimiser_finds(bound: float) -> None:
    seen, rate = seen_of(random_rows(1)), np.array([1e-3])
    model, chosen = bounded(seen, bound), [0, 3, 5]
    theta = model.refit(rate, chosen, np.zeros(3))

    def loss(x: Any) -> float:
        return -plain_loglik(seen, bound, 1e-3, dict(zip(chosen, np.abs(x).tolist(), strict=True)))

    other = minimize(loss, [0.01] * 3, method="Nelder-Mead", options={"xatol": 1e-7, "fatol": 1e-9})
    assert loss(theta) <= other.fun + 1e-6


@pytest.mark.parametrize("bound", [1.0, 3.0, 10.0])
def test_a_component_that_loses_everything_gets_a_finite_rate(bound: float) -> None:
    seen = seen_of([(hops, a, b, 5, 5 if lost else 0) for hops, a, b, _, lost in star("link/h1~sw")])
    steps = bounded(seen, bound).steps(np.full(seen.failing.rows, 1e-9), np.arange(seen.components))
    assert np.isfinite(steps.theta).all()
    assert np.isfinite(steps.gain).all()


def test_a_rate_is_the_one_at_which_so_many_flows_fail_however_long_some_of_them_are() -> None:
    """Thirty short flows of sixty fail, and all long ones, which carry nearly all packets."""
    short = [(["link/x"], f"host/{i}", "host/z", 50, int(i % 2 == 0)) for i in range(60)]
    long = [(["link/x"], f"host/{i}", "host/y", 50_000, 700) for i in range(6)]
    seen = seen_of([*short, *long])
    steps = bounded(seen, 1.0).steps(np.full(seen.failing.rows, 1e-12), np.array([0]))
    assert steps.theta[0] == pytest.approx(math.log(2) / 50, rel=0.01)


def test_what_loses_all_has_the_highest_rate_without_creeping_there() -> None:
    """The slope of a censored count dies away, and a total outage took more than two minutes."""
    seen = seen_of([(["link/1", f"link/{2 + n % 3}"], f"host/{n}", "host/z", 100, 100) for n in range(9)])
    steps = bounded(seen, 2.0).steps(np.full(seen.failing.rows, 1e-4), np.arange(seen.components))
    assert steps.theta.tolist() == [CEILING] * seen.components


@pytest.mark.parametrize("bad", [1, 3])
def test_each_of_several_needs_less_by_the_log_of_how_many_they_are(bad: int) -> None:
    seen = observe(simulated(3, bad=bad, low=2e-2).window, "underlay")
    found = explain(seen, RULES)
    alone = thresholds(seen, RULES.margin)[found.chosen]
    assert len(found.chosen) == bad
    assert found.needed == pytest.approx(alone - math.log(bad))


def test_the_upper_bound_of_no_losses_is_three_in_all_packets() -> None:
    assert upper_rate(np.array(0.0), np.array(1000.0)) == pytest.approx(0.003, rel=0.01)


def test_a_burst_counts_little_more_than_one_loss() -> None:
    seen = seen_of([(["link/1"], "host/1", "host/2", 100, 50), (["link/2"], "host/1", "host/3", 100, 0)])
    assert bounds(seen, np.full(seen.profiles, 1e-6)).tolist() == [1.0]


def test_what_is_lost_at_once_is_learnt_from_short_flows_and_counts_once_in_long_ones() -> None:
    rows: list[Row] = [([f"link/{i}", "link/x"], f"host/{i}", "host/z", 100, 4) for i in range(10)]
    seen = seen_of([*rows, (["link/y"], "host/y", "host/z", 20_000, 11)])
    rate, every = np.full(seen.profiles, 1e-4), np.ones(seen.failing.rows, dtype=np.bool_)
    burst = burst_of(seen, every, rate)
    assert burst == 4.0
    assert sorted(bursts_of(seen, burst).tolist()) == [1.0] * 10 + [2.0]


def test_flows_that_lost_most_of_their_packets_say_nothing_of_bursts() -> None:
    rows: list[Row] = [([f"link/{i}", "link/x"], f"host/{i}", "host/z", 100, 90) for i in range(10)]
    seen = seen_of(rows)
    every = np.ones(seen.failing.rows, dtype=np.bool_)
    assert burst_of(seen, every, np.full(seen.profiles, 1e-4)) == 1.0


def test_long_flows_that_lose_a_burst_each_accuse_no_link() -> None:
    """Noise loses four packets at once, once in 20,000; two long flows and a short one meet on one link."""
    rows: list[Row] = [
        ([f"link/u{i}", f"link/v{i % 7}"], f"host/{i}", f"host/z{i}", 100, 4) for i in range(12)
    ]
    rows += [([f"link/u{i}", f"link/v{i % 7}"], f"host/{i}", f"host/z{i}", 2_000, 0) for i in range(120)]
    rows += [
        (["link/a", "link/t"], "host/a", "host/x", 7_500, 8),
        (["link/b", "link/t"], "host/b", "host/x", 7_500, 9),
    ]
    rows += [
        (["link/c", "link/t"], "host/c", "host/x", 90, 1),
        (["link/d", "link/t"], "host/d", "host/x", 3_000, 0),
    ]
    seen = seen_of(rows)
    assert explain(seen, RULES).chosen == []


def test_where_losing_is_normal_more_losses_of_a_row_count() -> None:
    seen = seen_of([(["link/1"], "host/1", "host/2", 10_000, 500), (["link/2"], "host/1", "host/3", 100, 0)])
    assert bounds(seen, np.full(seen.profiles, 1e-3)).tolist() == [20.0]


@pytest.mark.simulated
def test_several_bad_links_are_all_found() -> None:
    for seed in range(3):
        made = simulated(seed, bad=4)
        seen = observe(made.window, "underlay")
        assert set(named(seen, explain(seen, RULES).chosen)) == set(made.bad)


def test_what_was_taken_in_error_is_dropped_when_its_losses_have_a_better_explanation() -> None:
    rows: list[Row] = []
    for i in range(40):
        rows.append((["link/x", f"link/u{i}"], f"host/{i}", "host/0", 100, int(i % 2 == 0)))
        rows.append((["link/y", "link/x"], f"host/{i}", f"host/y{i}", 100, 3))
        rows.append((["link/z", f"link/u{i}"], f"host/{i}", "host/z", 100, 0))
        rows.append((["link/y", f"link/w{i}"], f"host/w{i}", f"host/y{i}", 100, 3))
    seen = seen_of(rows)
    assert sorted(named(seen, explain(seen, RULES).chosen)) == ["link/x", "link/y"]


def test_few_long_flows_of_a_bad_link_do_not_make_its_neighbours_suspects() -> None:
    """Uplinks of which every other flow passes a link that loses 5 %; so do four flows of 50,000 packets."""
    rows: list[Row] = []
    for host in range(6):
        for i in range(20):
            rows.append(([f"link/u{host}", "link/x"], f"host/{host}", f"host/x{i}", 60, 3))
            rows.append(([f"link/u{host}", "link/y"], f"host/{host}", f"host/y{i}", 60, 0))
    rows += [([f"link/v{i}", "link/x"], f"host/v{i}", "host/x0", 50_000, 2_500) for i in range(4)]
    seen = seen_of(rows)
    assert named(seen, explain(seen, RULES).chosen) == ["link/x"]


def test_two_pairs_of_hosts_are_too_few_to_accuse_a_link() -> None:
    rows = [
        (hops, a, b, 100, 9 if a == "host/1" and b in ("host/2", "host/3") else 0)
        for hops, a, b, _, _ in star()
    ]
    assert explain(seen_of(rows), RULES).chosen == []


def plain_007(rows: Sequence[Row], share: float, least: int) -> list[str]:
    """Algorithm 1 of the 007 paper with loops and dictionaries."""
    left = [(set(hops), (a, b), len(hops)) for hops, a, b, _, lost in rows if lost]
    blamed: list[str] = []
    while True:
        votes: dict[str, float] = {}
        pairs: dict[str, set[tuple[str, str]]] = {}
        for hops, pair, length in left:
            for hop in hops:
                votes[hop] = votes.get(hop, 0.0) + 1 / length
                pairs.setdefault(hop, set()).add(pair)
        fit = {hop: vote for hop, vote in votes.items() if len(pairs[hop]) >= least}
        if not fit or max(fit.values()) < share * sum(votes.values()):
            return blamed
        top = max(fit.values())
        (best, *_) = [hop for hop, vote in fit.items() if vote > top - 1e-9]
        blamed.append(best)
        left = [flow for flow in left if best not in flow[0]]


@pytest.mark.parametrize("seed", range(3))
def test_votes_agree_with_plain_loops(seed: int) -> None:
    made = simulated(seed, bad=3)
    seen = observe(made.window, "underlay")
    sums = made.window.sums["failing"]
    hops = sums.keys["hops"]
    assert isinstance(hops, Paths)
    rows: list[Row] = [
        (hops[r], *seen.failing.ends[r], 1, 1)
        for r in range(sums.rows)
        for _ in range(int(sums.values["flows"][r]))
    ]
    found = discounted(seen, 0.01, 3)
    assert set(made.bad) <= {seen.paths.names[one.component] for one in found}
    assert named(seen, [one.component for one in found]) == plain_007(rows, 0.01, 3)


def test_each_failing_flow_has_one_vote_to_share_among_its_links() -> None:
    seen = seen_of(star("link/h1~sw"))
    votes = dict(zip(seen.paths.names, votes_of(seen).tolist(), strict=True))
    assert (votes["link/h1~sw"], votes["link/sw~h2"]) == (pytest.approx(1.5), pytest.approx(0.5))


def test_the_flows_of_a_blamed_link_vote_no_more() -> None:
    seen = seen_of(star("link/h1~sw"))
    assert named(seen, [one.component for one in discounted(seen, 0.01, 1)]) == ["link/h1~sw"]


def test_the_share_of_votes_stops_007() -> None:
    made = simulated(2, bad=3)
    seen = observe(made.window, "underlay")
    assert len(discounted(seen, 0.9, 1)) < len(discounted(seen, 0.01, 1))


def test_a_flow_is_blamed_on_the_link_on_its_path_with_most_votes() -> None:
    seen = seen_of(star("link/h1~sw"))
    assert set(named(seen, blamed_by_flow(seen, votes_of(seen)).tolist())) == {"link/h1~sw"}


def test_a_flow_whose_links_have_hardly_a_vote_lost_its_packet_to_chance() -> None:
    hops = [f"link/{i}" for i in range(6)]
    seen = seen_of([(hops, "host/1", "host/2", 100, 1), (["link/9"], "host/1", "host/3", 100, 0)])
    assert blamed_by_flow(seen, votes_of(seen)).tolist() == [-1]


def test_majority_names_the_most_shared_link() -> None:
    (one,) = majority(seen_of(star("link/h2~sw")), 3)
    assert named(seen_of(star("link/h2~sw")), [one.component]) == ["link/h2~sw"]


def test_links_with_equally_many_votes_are_one_entry_of_the_majority() -> None:
    rows = [
        (hops, a, b, 100, int(a in ("host/1", "host/2") and b not in ("host/1", "host/2")))
        for hops, a, b, _, _ in star(size=6)
    ]
    seen = seen_of(rows)
    (one,) = majority(seen, 3)
    assert sorted(named(seen, [one.component, *one.others])) == ["link/h1~sw", "link/h2~sw"]
