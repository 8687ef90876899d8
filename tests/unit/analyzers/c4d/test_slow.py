"""Ranks that are named when a training job is slow, from records written by hand and from simulated jobs."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from analyzers.builtin.c4d import ANALYZER
from analyzers.runner import judge
from analyzers.simulators.collectives.jobs import Job
from analyzers.simulators.collectives.rows import EVENTS, case
from analyzers.testing import Case, check_analyzer
from tests.unit.analyzers.c4d.cases import Part, iterations, named, verdict_of

RANKS = range(8)
SMALL = Job(data=8, micro_batches=1, compute=0.5)


def transfers(
    slow: dict[tuple[int, int], float], steps: tuple[int, ...] = (1, 7), count: int = 30
) -> list[Part]:
    """An all-reduce a second, with a transfer of 100 ms a step from each rank; some take so many times as long."""
    parts = iterations(RANKS, count)
    for seq in range(count):
        for src in RANKS:
            for step in steps:
                dst = (src + step) % 8
                lasts = 0.1 * slow.get((src, dst), 1.0) * (1 + 0.02 * ((seq * 7 + src * 3 + dst) % 5))
                parts.append(Part("dp", seq, src, seq, seq + lasts, src=src, dst=dst))
    return parts


def test_a_high_row_of_the_delay_matrix_is_the_sending_side() -> None:
    assert named(verdict_of(transfers({(2, 3): 2.0, (2, 1): 2.0}))) == ["rank_tx/2"]


def test_a_high_column_is_the_receiving_side() -> None:
    assert named(verdict_of(transfers({(1, 2): 2.0, (3, 2): 2.0}))) == ["rank_rx/2"]


def test_a_row_and_a_column_of_one_rank_are_its_nic() -> None:
    slow = dict.fromkeys([(2, 3), (2, 1), (1, 2), (3, 2)], 2.0)
    assert named(verdict_of(transfers(slow))) == ["rank/2"]


def test_a_single_high_element_is_the_connection() -> None:
    assert named(verdict_of(transfers({(2, 3): 2.0}))) == ["channel/2~3"]


def test_a_connection_that_is_always_a_little_slower_is_no_fault() -> None:
    assert named(verdict_of(transfers({(2, 3): 1.4}))) == []


@pytest.mark.parametrize(("always", "places"), [(3, ["channel/4~2", "channel/5~2"]), (0, ["rank_rx/2"])])
def test_a_column_of_which_most_was_always_as_slow_is_not_named_for_the_rest(
    always: int, places: list[str]
) -> None:
    """Five of seven connections into rank 2 are slower in the end, some of them from the first operation on."""
    ends = [(src, 2) for src in (0, 1, 3, 4, 5)]
    steps = tuple(range(1, 8))
    before = transfers(dict.fromkeys(ends[:always], 1.3), steps, 52)
    since = [part for part in transfers(dict.fromkeys(ends, 1.3), steps, 60) if part.seq >= 52]
    assert named(verdict_of(before + since)) == places


def test_a_rank_that_was_a_little_late_now_and_then_before_is_named_once_it_is_late() -> None:
    by_span = (0.0, 0.04, 0.0, 0.04, 0.4, 0.4)
    parts = [
        part
        for place, late in enumerate(by_span)
        for part in iterations(RANKS, 60, late={3: late})
        if part.seq // 10 == place
    ]
    assert named(verdict_of(parts)) == ["rank/3"]


@pytest.mark.parametrize("early", [0.0, 0.08])
def test_of_four_ranks_the_late_one_is_named_although_another_waits_longer(early: float) -> None:
    before, since = iterations(range(4), 20), iterations(range(4), 40, late={0: -early, 1: 0.25})[80:]
    assert named(verdict_of(before + since)) == ["rank/1"]


@pytest.mark.parametrize(("of", "late"), [(3, ["rank/0", "rank/1"]), (4, [])])
def test_ranks_that_are_late_together_are_not_named_if_others_of_their_communicator_are_not_seen(
    of: int, late: list[str]
) -> None:
    before, since = iterations(range(3), 25), iterations(range(3), 40, late={0: 0.2, 1: 0.2})[75:]
    parts = [replace(one, ranks=of) for one in before + since]
    assert sorted(named(verdict_of(parts))) == late


def ring_of_five(slow: float, lately: float = 1.0, recent: int = 8) -> list[Part]:
    """60 all-reduces in one ring whose transfers scatter by a quarter; those from 2 to 3 take `slow` times as long, the
    most `recent` of them `lately` times that."""
    rng, parts = np.random.default_rng(6), iterations(range(5), 60)
    for seq in range(60):
        for src in range(5):
            lasts = 0.1 * float(np.exp(0.25 * rng.standard_normal()))
            if src == 2:
                lasts *= slow * (lately if seq >= 60 - recent else 1.0)
            parts.append(Part("dp", seq, src, seq, seq + lasts, src=src, dst=(src + 1) % 5))
    return parts


def test_the_longest_way_of_a_small_ring_is_not_named_for_a_few_slow_operations() -> None:
    assert named(verdict_of(ring_of_five(1.4, lately=1.25))) == []


def test_in_a_small_ring_a_connection_that_was_slow_before_the_window_is_named() -> None:
    assert named(verdict_of(ring_of_five(2.2))) == ["channel/2~3"]


def test_in_a_small_ring_a_connection_that_becomes_slow_is_named() -> None:
    assert named(verdict_of(ring_of_five(1.0, lately=2.5, recent=20))) == ["channel/2~3"]


def test_a_connection_stays_named_while_it_is_slow_for_most_of_the_record() -> None:
    rng, parts = np.random.default_rng(8), iterations(range(5), 200)
    for seq in range(200):
        for src in range(5):
            lasts = 0.1 * float(np.exp(0.25 * rng.standard_normal()))
            lasts *= (1.0, 1.15, 1.0, 0.9, 1.0)[src] * (2.6 if src == 2 and seq >= 60 else 1.0)
            parts.append(Part("dp", seq, src, seq, seq + lasts, src=src, dst=(src + 1) % 5))
    assert named(verdict_of(parts, 200.0)) == ["channel/2~3"]


def test_the_node_of_a_rank_stands_in_its_path_and_in_the_evidence() -> None:
    placed = [replace(part, node=f"node/n{part.rank // 4}") for part in transfers({(2, 3): 2.0, (2, 1): 2.0})]
    verdict = verdict_of(placed)
    assert verdict["suspects"][0]["path"] == ["rank_tx/2", "node/n0", "job/train"]
    (shown,) = verdict["evidence"][0]["rows"]
    assert shown[:2] == ["rank_tx/2", "node/n0"]


def test_in_one_ring_sender_receiver_and_connection_are_one_group() -> None:
    (suspect,) = verdict_of(transfers({(2, 3): 2.0}, steps=(1,)))["suspects"]
    assert suspect["component"] == "channel/2~3"
    assert suspect["ambiguous_with"] == ["rank_rx/3", "rank_tx/2"]


def test_in_one_ring_two_slow_connections_of_a_rank_are_its_nic() -> None:
    assert named(verdict_of(transfers({(1, 2): 2.0, (2, 3): 2.0}, steps=(1,)))) == ["rank/2"]


def test_two_faults_at_once_are_both_named() -> None:
    slow = dict.fromkeys([(2, 3), (2, 1), (6, 5)], 2.0)
    assert named(verdict_of(transfers(slow))) == ["channel/6~5", "rank_tx/2"]


def test_connections_across_nodes_are_not_compared_with_those_within() -> None:
    far = {(src, dst): 8.0 for src in RANKS for dst in RANKS if src // 4 != dst // 4}
    assert named(verdict_of(transfers(far))) == []
    placed = [replace(part, node=f"node/n{part.rank // 4}") for part in transfers({**far, (1, 2): 2.0})]
    assert named(verdict_of(placed)) == ["channel/1~2"]


def test_delays_between_many_ranks_are_no_fault_of_one() -> None:
    slow = {(src, (src + 1) % 8): 3.0 for src in (0, 2, 4, 6)}
    assert verdict_of(transfers(slow))["status"] == "inconclusive"


def test_of_a_send_and_its_receive_the_one_that_waited_does_not_count() -> None:
    parts = []
    for seq in range(30):
        for src in range(7):
            parts.append(Part("pp", seq, src, seq, seq + 0.1 + 0.5 * (src == 3), "send", src, src + 1))
            parts.append(Part("pp", seq, src + 1, seq, seq + 0.1, "recv", src, src + 1))
    assert named(verdict_of(parts)) == []


def test_a_receive_without_the_record_of_its_send_says_nothing_of_the_connection() -> None:
    parts = []
    for seq in range(30):
        for src in range(7):
            ends = (("recv", src + 1, 0.6),) if src == 3 else (("send", src, 0.1), ("recv", src + 1, 0.1))
            parts += [Part("pp", seq, rank, seq, seq + lasts, op, src, src + 1) for op, rank, lasts in ends]
    assert named(verdict_of(parts)) == []


def test_the_rank_that_arrives_last_is_named_whatever_the_clocks_say() -> None:
    parts = iterations(RANKS, 30, late={5: 0.2})
    shifted = [replace(part, start=part.start - part.rank, end=(part.end or 0) - part.rank) for part in parts]
    (suspect,) = verdict_of(shifted)["suspects"]
    assert (suspect["component"], suspect["indicator"]) == ("rank/5", "late arrival")
    assert "20 % of the time" in suspect["phrase"]


def test_a_rank_that_is_late_because_it_waited_elsewhere_is_not_named() -> None:
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7)]
    late = [
        part for pair in pairs for part in iterations(pair, 30, f"tp{pair[0]}", {2: 0.2} if 2 in pair else {})
    ]
    both = [
        replace(part, start=part.start + 0.1, end=(part.end or 0) + 0.1)
        for part in iterations(RANKS, 30, late={2: 0.2, 3: 0.2})
    ]
    assert named(verdict_of([*late, *both])) == ["rank/2"]


def test_a_rank_that_is_late_now_and_then_is_not_named() -> None:
    parts = [
        Part("dp", seq, rank, seq + 0.2 * (rank == 5 and seq % 9 < 3), seq + 0.3)
        for seq in range(60)
        for rank in RANKS
    ]
    assert named(verdict_of(parts)) == []


@pytest.mark.simulated
@pytest.mark.parametrize(
    "kind",
    [
        "hang",
        "stuck_channel",
        "stuck_tx",
        "mismatch",
        "slow_tx",
        "slow_rx",
        "slow_nic",
        "slow_channel",
        "slow_compute",
    ],
)
def test_each_fault_of_a_simulated_job_is_named_and_nothing_else(kind: str) -> None:
    window, (fault,) = case(SMALL, 3, kind, onset=65.0, at=85.0)
    assert named(judge(ANALYZER, window, {})) == [fault.component]


@pytest.mark.simulated
@pytest.mark.parametrize("event", ["", *EVENTS])
def test_a_benign_event_names_nobody(event: str) -> None:
    window, _ = case(replace(SMALL, experts=event == "experts"), 5, event=event, onset=65.0, at=90.0)
    assert named(judge(ANALYZER, window, {})) == []


@pytest.mark.simulated
@pytest.mark.parametrize("kind", ["hang", "slow_tx"])
def test_it_has_the_properties_of_an_analyzer(kind: str) -> None:
    def made(seed: int, faulty: bool) -> Case:
        window, faults = case(replace(SMALL, data=6), seed, kind if faulty else "", onset=62.0, at=80.0)
        return Case(window, tuple(fault.component for fault in faults))

    check_analyzer(ANALYZER, made, seeds=[2], numbered=("rank", "rank_tx", "rank_rx", "channel"))
