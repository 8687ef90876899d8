"""Ranks that are named when a training job stands still, from records written by hand."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.unit.analyzers.c4d.cases import Part, blocked, iterations, named, verdict_of

RANKS = range(8)


def test_the_rank_that_never_launched_what_all_others_wait_in_is_named() -> None:
    verdict = verdict_of([*iterations(RANKS, 20), *blocked([r for r in RANKS if r != 3], 20)])
    (suspect,) = verdict["suspects"]
    assert (suspect["component"], suspect["indicator"]) == ("rank/3", "operation not launched")
    assert "7 ranks" in suspect["phrase"]


def test_peers_that_wait_for_the_culprit_in_another_communicator_are_not_blamed() -> None:
    pairs = [(0, 1), (2, 3), (4, 5), (6, 7)]
    healthy = [part for pair in pairs for part in iterations(pair, 20, f"tp{pair[0]}")]
    healthy += [
        replace(part, start=part.start + 0.2, end=(part.end or 0) + 0.2) for part in iterations(RANKS, 20)
    ]
    waiting = blocked([2], 20, "tp2") + blocked([0, 1, 4, 5, 6, 7], 20)
    waiting += [
        part for pair in pairs if pair != (2, 3) for part in iterations(pair, 21, f"tp{pair[0]}")[-2:]
    ]
    assert named(verdict_of([*healthy, *waiting])) == ["rank/3"]


def test_a_transfer_without_progress_among_others_that_made_it_names_the_connection() -> None:
    ring = [(rank, (rank + 1) % 8) for rank in RANKS] + [((rank + 1) % 8, rank) for rank in RANKS]
    moved = [
        Part("dp", 20, src, 20.0, None if (src, dst) == (2, 3) else 20.1, src=src, dst=dst)
        for src, dst in ring
    ]
    verdict = verdict_of([*iterations(RANKS, 20), *blocked(RANKS, 20), *moved])
    assert named(verdict) == ["channel/2~3"]


def test_one_ring_leaves_open_which_side_of_a_connection_is_stuck() -> None:
    moved = [
        Part("dp", 20, rank, 20.0, None if rank == 2 else 20.1, src=rank, dst=(rank + 1) % 8)
        for rank in RANKS
    ]
    (suspect,) = verdict_of([*iterations(RANKS, 20), *blocked(RANKS, 20), *moved])["suspects"]
    assert suspect["component"] == "channel/2~3"
    assert suspect["ambiguous_with"] == ["rank_rx/3", "rank_tx/2"]


def test_without_records_of_transfers_a_stuck_operation_names_nobody() -> None:
    verdict = verdict_of([*iterations(RANKS, 20), *blocked(RANKS, 20)])
    assert (verdict["status"], named(verdict)) == ("inconclusive", [])
    assert "`src` and `dst`" in verdict["reason"]


@pytest.mark.parametrize(("op", "size"), [("all_gather", 1e6), ("all_reduce", 2e6)])
def test_another_operation_or_size_at_the_same_number_is_a_verdict_on_the_software(
    op: str, size: float
) -> None:
    odd = blocked([5], 20, op=op, size=size)
    verdict = verdict_of([*iterations(RANKS, 20), *blocked([r for r in RANKS if r != 5], 20), *odd])
    (suspect,) = verdict["suspects"]
    assert (suspect["component"], suspect["indicator"]) == ("rank/5", "operation mismatch")
    assert "software" in suspect["phrase"]


def test_ranks_that_enter_two_communicators_in_different_orders_wait_in_a_ring() -> None:
    healthy = iterations((0, 1), 20, "a") + iterations((0, 1), 20, "b")
    verdict = verdict_of([*healthy, *blocked([0], 20, "a"), *blocked([1], 20, "b")])
    (suspect,) = verdict["suspects"]
    assert sorted([suspect["component"], *suspect["ambiguous_with"]]) == ["rank/0", "rank/1"]


def test_a_send_that_is_not_received_blames_the_rank_that_does_not_receive() -> None:
    sent = [
        Part("pp", seq, rank, seq, seq + 0.1, op, 1, 2)
        for seq in range(20)
        for rank, op in ((1, "send"), (2, "recv"))
    ]
    stuck = [Part("pp", 20, 1, 20.0, None, "send", 1, 2)]
    assert named(verdict_of([*sent, *iterations((0, 1), 20), *stuck])) == ["rank/2"]


def test_a_send_and_its_receive_that_stay_open_blame_the_connection() -> None:
    sent = [
        Part("pp", seq, rank, seq, seq + 0.1, op, 1, 2)
        for seq in range(20)
        for rank, op in ((1, "send"), (2, "recv"))
    ]
    stuck = [Part("pp", 20, rank, 20.0, None, op, 1, 2) for rank, op in ((1, "send"), (2, "recv"))]
    assert named(verdict_of([*sent, *stuck])) == ["channel/1~2"]


def test_a_stall_no_longer_than_one_that_was_resolved_before_is_no_hang() -> None:
    slow = [Part("dp", 20, rank, 20.0 + 20 * (rank == 3), 40.1) for rank in RANKS]
    after = [
        replace(part, seq=part.seq + 21, start=part.start + 41, end=(part.end or 0) + 41)
        for part in iterations(RANKS, 5)
    ]
    waiting = [Part("dp", 26, rank, 46.0) for rank in RANKS if rank != 3]
    assert named(verdict_of([*iterations(RANKS, 20), *slow, *after, *waiting], 65.0)) == []
    assert named(verdict_of([*iterations(RANKS, 20), *slow, *after, *waiting], 80.0)) == ["rank/3"]


def test_a_pause_of_all_ranks_before_the_operation_lets_its_stragglers_take_longer() -> None:
    waiting = [Part("dp", 20, rank, 35.0) for rank in RANKS if rank != 3]
    assert named(verdict_of([*iterations(RANKS, 20), *waiting], 60.0)) == []


def test_the_first_rank_may_write_a_checkpoint_for_a_minute() -> None:
    parts = [*iterations(RANKS, 20), *blocked(RANKS[1:], 20)]
    verdict = verdict_of(parts, 60.0)
    assert (verdict["status"], named(verdict)) == ("inconclusive", [])
    assert named(verdict_of(parts, 90.0)) == ["rank/0"]


def test_many_ranks_that_stop_together_are_a_job_that_was_stopped() -> None:
    verdict = verdict_of([*iterations(RANKS, 20), *blocked((0, 1, 2, 3), 20)])
    assert verdict["status"] == "inconclusive"
    assert "stopped or paused" in verdict["reason"]


def test_all_ranks_of_one_node_may_stop_together() -> None:
    parts = [*iterations(range(16), 20), *blocked(range(12), 20)]
    placed = [replace(part, node=f"node/n{part.rank // 4}") for part in parts]
    assert named(verdict_of(placed)) == ["rank/12", "rank/13", "rank/14", "rank/15"]


def test_clocks_that_differ_by_seconds_change_nothing() -> None:
    parts = [*iterations(RANKS, 20), *blocked([r for r in RANKS if r != 3], 20)]
    shifted = [
        replace(part, start=part.start + part.rank - 4, end=part.end and part.end + part.rank - 4)
        for part in parts
    ]
    assert named(verdict_of(shifted)) == ["rank/3"]


def test_lost_rows_leave_open_who_did_not_launch() -> None:
    parts = [part for part in iterations(RANKS, 20) if (part.seq * 3 + part.rank) % 7]
    verdict = verdict_of([*parts, *blocked([r for r in RANKS if r not in (3, 6)], 20)], 60.0)
    assert (verdict["status"], named(verdict)) == ("inconclusive", [])
    assert "rank/3 or rank/6 did not launch" in verdict["reason"]
    assert [one["holds"] for one in verdict["assumptions"] if one["name"] == "sampling"] == [False]


def test_reports_that_repeat_tell_lost_rows_from_a_rank_that_did_not_launch() -> None:
    parts = [part for part in iterations(RANKS, 20) if (part.seq * 3 + part.rank) % 7]
    waiting = blocked([r for r in RANKS if r != 3], 20)
    again = [
        replace(part, time=20.0 + 5 * n) for n in range(1, 8) for part in waiting if (n * 3 + part.rank) % 7
    ]
    few = verdict_of([*parts, *waiting])
    assert (few["status"], named(few)) == ("inconclusive", [])
    (suspect,) = verdict_of([*parts, *waiting, *again])["suspects"]
    assert suspect["component"] == "rank/3"


def test_a_rank_without_records_for_long_is_not_taken_for_one_that_hangs() -> None:
    parts = [part for part in iterations(RANKS, 20) if part.rank != 3 or part.seq < 10]
    verdict = verdict_of([*parts, *blocked([r for r in RANKS if r != 3], 20)])
    assert named(verdict) == []


def test_states_that_are_reported_again_count_once() -> None:
    parts = [*iterations(RANKS, 20), *blocked([r for r in RANKS if r != 3], 20)]
    again = [replace(part, time=40.0 + part.rank) for part in parts if part.end is None]
    assert named(verdict_of([*parts, *again])) == ["rank/3"]


def test_a_communicator_that_began_anew_with_fewer_ranks_waits_for_none_of_the_old() -> None:
    before = iterations(RANKS, 20)
    after = [
        replace(part, start=part.start + 30, end=(part.end or 0) + 30) for part in iterations(range(6), 20)
    ]
    assert named(
        verdict_of([*before, *after, *[replace(p, start=50.0) for p in blocked(range(5), 20)]], 90.0)
    ) == ["rank/5"]


def test_a_dump_made_because_of_a_hang_is_judged_at_once() -> None:
    parts = [*iterations(RANKS, 20), *blocked([r for r in RANKS if r != 3], 20)]
    assert named(verdict_of(parts, 20.5)) == []
    assert named(verdict_of(parts, 20.5, hang_seconds=0)) == ["rank/3"]


@pytest.mark.parametrize(
    ("end", "told"),
    [(20.0, "7 ranks of job train wait for it at the end of the records"), (32.0, "waited for it for 12 s")],
)
def test_the_duration_of_a_hang_is_stated_only_where_the_records_show_one(end: float, told: str) -> None:
    parts = [*iterations(RANKS, 20), *blocked([r for r in RANKS if r != 3], 20)]
    (suspect,) = verdict_of(parts, end, hang_seconds=0)["suspects"]
    assert told in suspect["summary"]


def polled(stopped: int) -> list[Part]:
    """Last launches of each rank every five seconds, as NCCL RAS knows them; one rank stops at 19."""
    parts = []
    for poll in range(0, 60, 5):
        for rank in RANKS:
            seq = min(poll, 19 if rank == stopped else 20) if stopped >= 0 else poll
            parts.append(Part("0x7f/all_reduce", seq, rank, 0.0, state="scheduled", time=float(poll)))
            parts.append(Part("0x7f/broadcast", 1, rank, 0.0, state="scheduled", time=float(poll)))
    return [replace(part, start=part.time or 0.0) for part in parts]


def test_of_last_launches_alone_the_rank_behind_is_named() -> None:
    assert named(verdict_of(polled(3))) == ["rank/3"]
    assert named(verdict_of(polled(-1))) == []
