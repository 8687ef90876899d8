"""Verdicts of voting: who is named and how, when it keeps quiet, and when it does not know."""

import math
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.paths import TITLE
from analyzers.builtin.voting import ANALYZER
from analyzers.builtin.voting.charges import SCORES, over_threshold, probability
from analyzers.contract import Paths, Sums
from analyzers.simulators.fabric import Shape, build
from analyzers.simulators.routes import gathered
from analyzers.simulators.voting import (
    BENIGN,
    Fault,
    Load,
    benign_traffic,
    break_pair,
    cut,
    draw_fault,
    draw_traffic,
    run,
)
from analyzers.testing import Case, check_analyzer, crossing_cases
from tests.unit.analyzers.voting.cases import FABRIC, LOAD, Row, case, simulated, star, verdict_on, window_of

BAD = "link/h1~sw"


def named(verdict: dict[str, Any]) -> list[str]:
    return [one["component"] for one in verdict["suspects"]]


def rows_of(failing: Sums) -> list[tuple[set[str], int]]:
    """The hops of each row, and what it lost."""
    sets = failing.keys["hops"]
    assert isinstance(sets, Paths)
    ends = zip(sets.indptr[:-1].tolist(), sets.indptr[1:].tolist(), strict=True)
    names = [{sets.names[i] for i in sets.indices[low:high].tolist()} for low, high in ends]
    return list(zip(names, failing.values["lost"].tolist(), strict=True))


def piece(verdict: dict[str, Any], title: str) -> dict[str, Any]:
    (found,) = (one for one in verdict["evidence"] if one["title"] == title)
    return dict(found)


@pytest.mark.simulated
@pytest.mark.parametrize("method", ["explain", "007"])
def test_it_is_a_good_analyzer(method: str) -> None:
    check_analyzer(ANALYZER, case, {"method": method}, seeds=range(2))


@pytest.mark.simulated
def test_the_majority_is_a_good_analyzer_where_one_link_fails() -> None:
    def one(seed: int, faulty: bool) -> Case:
        made = simulated(seed, 1 if faulty else 0, low=2e-2)
        return Case(made.window, made.bad)

    check_analyzer(ANALYZER, one, {"method": "majority"}, seeds=range(2))


@pytest.mark.simulated
def test_it_reads_path_outcomes_as_well() -> None:
    crossing = crossing_cases("outcomes", history=0)

    def outcomes(seed: int, faulty: bool) -> Case:
        made = crossing(seed, faulty)
        told = made.window.sums["outcomes"]
        values = {"sent": told.values["attempts"], "lost": told.values["failures"]}
        bad = np.flatnonzero(values["lost"])
        sets = told.keys["components"]
        assert isinstance(sets, Paths)
        failing = Sums(
            {"components": gathered(sets, bad), "slice": np.zeros(len(bad), dtype=np.int64)},
            {"flows": np.ones(len(bad), dtype=np.int64), **{name: one[bad] for name, one in values.items()}},
            len(bad),
        )
        sums = {"paths": replace(told, values=values), "failing": failing}
        return replace(made, window=replace(made.window, sums=sums))

    check_analyzer(ANALYZER, outcomes, {"min_loss": 0.01}, seeds=range(2))


def test_the_blamed_link_has_a_score_an_estimate_and_times() -> None:
    verdict = verdict_on(window_of(star(BAD)))
    (suspect,) = verdict["suspects"]
    assert suspect["component"] == BAD
    assert 0.5 < suspect["score"] <= 1
    assert suspect["estimate"]["low"] < 0.05 < suspect["estimate"]["high"]
    assert (suspect["first_failure"], suspect["last_failure"]) == (
        "2026-01-05T00:00:00Z",
        "2026-01-05T00:00:30Z",
    )


@pytest.mark.parametrize(("late", "last"), [(1, "00:30"), (4, "10:00")])
def test_what_is_usual_after_a_repair_does_not_make_the_failure_last(late: int, last: str) -> None:
    rows: list[Row] = [
        (hops, a, b, 4000, 400 if BAD in hops else int(number % 7 == 0))
        for number, (hops, a, b, _, _) in enumerate(star(size=6))
    ]
    hops = next(row[0] for row in rows if BAD in row[0])
    window = window_of([*rows, (hops, "host/2", "host/1", 4000, late)], length=600.0)
    told = window.sums["failing"]
    at = np.array([19 * (lost == late and BAD in names) for names, lost in rows_of(told)])
    moved = replace(told, keys={**told.keys, "slice": at})
    (suspect,) = verdict_on(replace(window, sums={**window.sums, "failing": moved}))["suspects"]
    assert (suspect["component"], suspect["last_failure"]) == (BAD, f"2026-01-05T00:{last}Z")


def test_the_sentence_says_what_was_lost_and_how_widely() -> None:
    (suspect,) = verdict_on(window_of(star(BAD)))["suspects"]
    assert suspect["summary"].startswith(
        f"{BAD} loses 4.7 % of what is sent over it: 14 of 300 packets, on 3 flows of 3 pairs of hosts"
    )


@pytest.mark.parametrize("method", ["007", "majority"])
def test_votes_give_no_probability_and_are_never_sure(method: str) -> None:
    (suspect,) = verdict_on(window_of(star(BAD)), method=method)["suspects"]
    assert (suspect["component"], suspect["score"], suspect["sure"]) == (BAD, None, False)


def test_links_that_all_flows_share_are_one_entry() -> None:
    rows: list[Row] = [
        ([*hops, "link/twin"] if BAD in hops else hops, a, b, sent, lost)
        for hops, a, b, sent, lost in star(BAD)
    ]
    (suspect,) = verdict_on(window_of(rows))["suspects"]
    assert {suspect["component"], *suspect["ambiguous_with"]} == {BAD, "link/twin"}
    assert "do not separate it from" in suspect["summary"]


def test_the_cleared_are_shown_with_the_reason() -> None:
    verdict = verdict_on(simulated(0, bad=1, low=2e-2).window)
    shown = piece(verdict, "Looked into and cleared")
    assert f"losses are those of {verdict['suspects'][0]['component']}" in shown["rows"][0][-1]


def test_failing_flows_are_put_down_to_the_link_that_lost_their_packets() -> None:
    made = simulated(3, bad=2)
    shown = piece(verdict_on(made.window), "Flows that lost most")
    assert {row[-1] for row in shown["rows"]} <= {*made.bad, "chance, no component"}


def test_simpler_methods_are_heard_in_the_evidence() -> None:
    shown = piece(verdict_on(window_of(star(BAD))), TITLE)
    assert [row[1] for row in shown["rows"]] == [BAD] * 4


def test_one_link_that_loses_all_is_no_reason_to_know_nothing() -> None:
    assert named(verdict_on(window_of(star(BAD, lost=100)))) == [BAD]


def test_losses_everywhere_alike_are_inconclusive_and_no_guess() -> None:
    rows: list[Row] = [(hops, a, b, sent, 20) for hops, a, b, sent, _ in star()]
    verdict = verdict_on(window_of(rows))
    assert (verdict["status"], verdict["suspects"]) == ("inconclusive", [])
    assert verdict["reason"].startswith("20 % of 1,200 packets are lost, and no component")


def test_probes_without_hops_are_inconclusive_with_the_field_to_send() -> None:
    rows: list[Row] = [((), "host/1", "host/2", 100, 3)]
    assert "`hops`" in verdict_on(window_of(rows))["reason"]


def test_an_empty_window_is_inconclusive() -> None:
    assert verdict_on(window_of([]))["status"] == "inconclusive"


def test_packets_that_were_never_sent_prove_nothing() -> None:
    assert verdict_on(window_of([(["link/1"], "host/1", "host/2", 0, 0)]))["status"] == "inconclusive"


def test_a_single_lossy_path_has_nothing_to_be_compared_with() -> None:
    verdict = verdict_on(window_of([(["link/1"], "host/1", "host/2", 100, 50)]))
    assert verdict["reason"] == "All paths hold the same components: paths cannot be compared."


def test_a_single_healthy_path_is_quiet() -> None:
    assert verdict_on(window_of([(["link/1"], "host/1", "host/2", 100, 0)]))["status"] == "quiet"


def test_huge_counts_do_no_harm() -> None:
    rows: list[Row] = [(hops, a, b, 10**12, 10**10 if BAD in hops else 3) for hops, a, b, _, _ in star()]
    assert named(verdict_on(window_of(rows))) == [BAD]


def test_overlay_probes_are_read_only_when_asked_for() -> None:
    window = window_of(star(BAD), layer="overlay")
    assert verdict_on(window)["status"] == "inconclusive"
    assert named(verdict_on(window, layer="overlay")) == [BAD]


@pytest.mark.parametrize("kind", BENIGN)
def test_what_looks_unusual_while_no_link_is_at_fault_accuses_no_one(kind: str) -> None:
    rng = np.random.default_rng(11)
    traffic, fault = benign_traffic(FABRIC, rng, kind, LOAD)
    losses = run(traffic, rng, 1e-6, fault)
    if kind == "broken_pair":
        losses = break_pair(traffic, losses, 7)
    assert named(verdict_on(cut(traffic, losses, fault).window)) == []


def test_a_link_is_found_while_a_switch_is_drained() -> None:
    rng = np.random.default_rng(4)
    traffic = draw_traffic(FABRIC, rng, LOAD, closed=[FABRIC.devices.index("t1/p1-a1")])
    link = FABRIC.links.index("link/p1-t1~p1-a2")
    fault = Fault(np.array([link]), np.array([0.02]))
    assert named(verdict_on(cut(traffic, run(traffic, rng, 1e-6, fault), fault).window)) == [
        "link/p1-t1~p1-a2"
    ]


def test_scores_rise_with_evidence() -> None:
    scores = [probability(x / 4) for x in range(-20, 200)]
    assert scores == sorted(scores)
    assert all(0 < score < 1 for _, score in SCORES)


def test_doubtful_components_do_not_vouch_for_each_other() -> None:
    alone, evidence = np.full(5, 8.0), np.full(5, 6.0)
    assert over_threshold(evidence, alone).tolist() == [-2.0] * 5


def test_beside_certain_ones_less_evidence_is_worth_as_much() -> None:
    alone = np.full(4, 8.0)
    beside = over_threshold(np.array([60.0, 60.0, 60.0, 9.0]), alone)[3]
    assert beside == pytest.approx(1.0 + math.log(4))


@pytest.mark.simulated
def test_where_healthy_links_lose_a_packet_in_a_thousand_bad_ones_are_named_and_no_others() -> None:
    fabric = build(Shape(pods=3, tors=5, t1s=3, t2s=3, hosts=6))
    found, bad = 0, 0
    for seed in range(2):
        rng = np.random.default_rng([seed, 6])
        traffic = draw_traffic(fabric, rng, Load(flows=40))
        fault = draw_fault(fabric, rng, 4, 1e-2, 1e-1)
        made = cut(traffic, run(traffic, rng, 2e-3, fault), fault)
        verdict = verdict_on(made.window)
        assert set(named(verdict)) <= set(made.bad)
        assert "noise" in unmet(verdict)
        found, bad = found + len(named(verdict)), bad + len(made.bad)
    assert found >= 0.85 * bad


def with_missing_hops(seed: int, share: float) -> list[Row]:
    """Flows over one of four links and then of two, the first of the four losing 5 %; that share of them does not
    name it.
    """
    rng = np.random.default_rng(seed)
    rows: list[Row] = []
    for a, b in product(range(10), range(10)):
        for _ in range(6 if a != b else 0):
            first = int(rng.integers(4))
            hops = [f"link/h{a}", f"link/x{first}", f"link/y{first // 2}", f"link/g{b}"]
            lost = int(rng.binomial(100, 0.05)) if first == 0 else 0
            kept = [hop for hop in hops if not hop.startswith("link/x") or rng.random() >= share]
            rows.append((kept, f"host/{a}", f"host/{b}", 100, lost))
    return rows


@pytest.mark.simulated
def test_where_hops_are_missing_the_neighbour_of_a_bad_link_is_not_named() -> None:
    for seed in range(3):
        whole, missing = (verdict_on(window_of(with_missing_hops(seed, share))) for share in (0.0, 0.2))
        assert named(whole) == named(missing) == ["link/x0"]
        assert "topology" not in unmet(whole)
        assert "topology" in unmet(missing)


def unmet(verdict: dict[str, Any]) -> set[str]:
    return {one["name"] for one in verdict["assumptions"] if not one["holds"]}


def test_where_only_failing_flows_are_known_most_of_a_kind_are_what_is_usual() -> None:
    """Two racks of forty fail flows over five cores alike: no core is unusual."""
    rng = np.random.default_rng(45)
    rows: list[Row] = []
    for rack in range(40):
        for _ in range(60 if rack < 2 else 3):
            other, core = int(rng.integers(2, 40)), int(rng.integers(5))
            hops = [f"tor/{rack}", f"core/{core}", f"tor/{other}"]
            rows.append((hops, f"host/{rack}-{rng.integers(9)}", f"host/{other}-{rng.integers(9)}", 100, 1))
    verdict = verdict_on(window_of([*rows, *(([], "host/a", "host/b", 10**6, 0),)]))
    assert set(named(verdict)) == {"tor/0", "tor/1"}


def failing_flows_to_a_busy_host(besides: int) -> list[Row]:
    """Failing flows of four bad uplinks, half of them to one host, and such to it over `besides` good uplinks."""
    rows: list[Row] = []
    for link in range(4 + besides):
        for i in range(14 if link < 4 else 1):
            to = 0 if i < 7 else 1 + (i + 3 * link) % 12
            hops = [f"link/from-{link}-{i}", f"link/up-{link}", f"link/down-{to}"]
            rows.append((hops, f"host/{link}-{i}", f"host/to-{to}", 60, 2))
    return rows


def test_the_link_of_a_busy_host_is_not_blamed_for_what_bad_links_elsewhere_fail() -> None:
    named = {one["component"] for one in verdict_on(window_of(failing_flows_to_a_busy_host(0)))["suspects"]}
    assert named == {f"link/up-{link}" for link in range(4)}


def test_the_link_of_a_busy_host_is_blamed_if_flows_fail_on_it_that_pass_no_bad_link() -> None:
    named = {one["component"] for one in verdict_on(window_of(failing_flows_to_a_busy_host(12)))["suspects"]}
    assert named == {"link/down-0", *(f"link/up-{link}" for link in range(4))}


def flows_over_a_bad_link(missing: bool) -> list[Row]:
    """Six hosts behind a good link and one that fails every other flow; some of these flows do not name all hops."""
    rows: list[Row] = []
    for host in range(6):
        for i in range(40):
            hops = [f"link/up-{(host * 7 + i) % 12}", f"link/{'yx'[i % 2 == 0]}", f"link/down-{host}"]
            lost = 3 if i % 4 == 0 else 0
            if missing and i % 8 == 0:
                hops.remove(hops[2] if host else "link/x")
            rows.append((hops, f"host/{i % 12}", f"host/to-{host}", 60, lost))
    return rows


@pytest.mark.simulated
def test_a_neighbour_is_not_blamed_for_flows_that_passed_a_bad_link_without_naming_it() -> None:
    verdict = verdict_on(window_of(flows_over_a_bad_link(missing=True)))
    assert [one["component"] for one in verdict["suspects"]] == ["link/x"]


@pytest.mark.simulated
@pytest.mark.parametrize("missing", [True, False])
def test_paths_of_different_lengths_between_the_same_hosts_say_that_hops_are_missing(missing: bool) -> None:
    assumptions = verdict_on(window_of(flows_over_a_bad_link(missing)))["assumptions"]
    (topology,) = [one for one in assumptions if one["name"] == "topology"]
    assert topology["holds"] is not missing


def unequal_losses(most: int, unequal: bool) -> list[Row]:
    """Flows from each of 60 uplinks to each of 60 downlinks. Uplinks lose one or two flows of 60, or none to six where
    they are `unequal`, and the last one `most`.
    """
    lost = [(0, 0, 0, 1, 1, 2, 2, 3, 5, 6)[up % 10] if unequal else 1 + up % 2 for up in range(59)]
    rows: list[Row] = []
    for up, losing in enumerate([*lost, most]):
        for down in range(60):
            fails = (down * 7 + up * 11) % 60 < losing
            hops, ends = [f"link/up-{up}", f"link/down-{down}"], (f"host/{up}", f"host/to-{down}")
            rows += [(hops, *ends, 100, int(fails)), (hops, *ends, 300, 0)]
    return rows


@pytest.mark.simulated
@pytest.mark.parametrize("unequal", [True, False])
def test_where_healthy_links_lose_unequally_one_that_loses_most_is_not_at_fault(unequal: bool) -> None:
    assert named(verdict_on(window_of(unequal_losses(14, unequal)))) == ([] if unequal else ["link/up-59"])
