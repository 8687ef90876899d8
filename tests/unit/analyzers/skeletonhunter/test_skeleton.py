"""Skeletons that skeletonhunter reads off the traffic of a job, and when it states none."""

from dataclasses import replace

import numpy as np
import pytest

from analyzers.builtin.skeletonhunter import ANALYZER
from analyzers.builtin.skeletonhunter.skeleton import (
    Series,
    Skeleton,
    infer,
    peers,
    resampled,
    share_of_mesh,
    silhouettes,
)
from analyzers.contract import check_params
from analyzers.runner import judge
from analyzers.simulators.deepview import EPOCH
from analyzers.simulators.training_traffic import Job, draw, schedule, traffic_rows
from tests.unit.analyzers.skeletonhunter.cases import only_window

JOB = Job(tp=4, pp=2, dp=4, rails=4, micro=4, seconds=90.0)


def series(job: Job, seed: int, order: list[int] | None = None) -> Series:
    made = draw(job, np.random.default_rng(seed))
    kept = np.arange(job.hosts) if order is None else np.array(order)
    nics = tuple(tuple(f"nic/h{host}-{rail}" for rail in range(job.rails)) for host in range(job.hosts))
    return Series(
        "j0",
        tuple(f"host/h{one}" for one in range(job.hosts)),
        nics,
        made.tx[kept],
        made.rx[kept],
        job.sample,
    )


def skeleton(job: Job, seed: int = 1) -> Skeleton:
    return infer(series(job, seed), check_params(ANALYZER, {}))


def test_a_schedule_of_one_stage_runs_without_a_bubble() -> None:
    _, backward = schedule(1, 4, 1.0)
    assert backward[0, -1] == pytest.approx(4 * 3.0)


def test_a_pipeline_has_the_bubble_of_its_depth() -> None:
    """(p - 1) (t_f + t_b) beside m (t_f + t_b) of work (1F1B; Narayanan et al., SC 2021)."""
    _, backward = schedule(4, 8, 1.0)
    assert backward[0, -1] == pytest.approx((8 + 3) * 3.0)


@pytest.mark.simulated
@pytest.mark.parametrize(
    "job",
    [
        JOB,
        replace(JOB, pp=4),
        replace(JOB, tp=2, pp=4),
        replace(JOB, pp=1, dp=8),
    ],
)
def test_degrees_of_a_dense_job_are_read_off_its_traffic(job: Job) -> None:
    found = skeleton(job)
    assert (found.tp, found.pp, found.dp) == (job.tp, job.pp, job.dp)
    assert found.confidence > 0.5


@pytest.mark.simulated
def test_the_order_of_hosts_does_not_matter_to_degrees() -> None:
    found = infer(series(JOB, 2, [3, 0, 7, 5, 1, 6, 2, 4]), check_params(ANALYZER, {}))
    assert (found.tp, found.pp, found.dp) == (4, 2, 4)


def test_without_a_skeleton_coarse_counters_are_named_with_the_sampling_that_is_needed() -> None:
    coarse = replace(series(replace(JOB, uneven=0.4), 1), step=1.0, unaligned=True)
    found = infer(coarse, check_params(ANALYZER, {}))
    assert found.stage is None
    assert "read every 1 s" in found.reason
    assert "read them every 0.2 s" in found.reason


@pytest.mark.simulated
@pytest.mark.parametrize("pp", [1, 2])
def test_of_a_mixture_of_experts_no_skeleton_is_stated(pp: int) -> None:
    found = skeleton(replace(JOB, pp=pp, dp=8 // pp, uneven=0.3))
    assert (found.stage, found.dp) == (None, 0)
    assert "mixtures of experts" in found.reason


def test_cards_that_receive_different_amounts_are_experts_although_all_send_alike() -> None:
    job = replace(JOB, pp=1, dp=8)
    dense = series(job, 1)
    shares = np.exp(0.2 * np.random.default_rng(3).standard_normal(dense.rx.shape[:2]))[:, :, None]

    found = infer(replace(dense, rx=dense.rx * shares), check_params(ANALYZER, {}))

    assert infer(dense, check_params(ANALYZER, {})).stage is not None
    assert found.stage is None
    assert "mixtures of experts" in found.reason


@pytest.mark.simulated
@pytest.mark.parametrize("tp", [2, 4])
def test_replicas_beside_each_other_in_a_host_are_told_apart(tp: int) -> None:
    job = Job(tp=tp, pp=2, dp=32 // tp, rails=8, micro=4, forward=0.3, seconds=90.0, beside=True)
    found = skeleton(job)
    assert (found.tp, found.pp, found.dp) == (job.tp, job.pp, job.dp)


@pytest.mark.simulated
def test_halves_of_a_host_that_differ_by_their_sockets_are_one_replica() -> None:
    job = Job(tp=8, pp=2, dp=4, rails=8, micro=4, forward=0.3, seconds=90.0, noise=0.001)
    found = series(job, 1)
    waits = 0.02 * np.random.default_rng(5).standard_normal((job.hosts, 2, found.tx.shape[2]))
    found = replace(found, tx=found.tx * np.exp(np.repeat(waits, 4, axis=1)))
    degrees = infer(found, check_params(ANALYZER, {}))
    assert (degrees.tp, degrees.pp, degrees.dp) == (8, 2, 4)


@pytest.mark.simulated
def test_experts_that_are_nearly_even_are_told_by_differences_that_last() -> None:
    job = replace(JOB, pp=1, dp=8)
    dense = series(job, 1)
    shares = 1 + 0.02 * np.random.default_rng(3).standard_normal(dense.rx.shape[:2])[:, :, None]

    found = infer(replace(dense, rx=dense.rx * shares), check_params(ANALYZER, {}))

    assert found.uneven < 0.03
    assert found.stage is None
    assert "always differ" in found.reason


def test_counters_read_at_other_moments_give_the_same_bytes_at_common_ones() -> None:
    moved = np.cumsum(np.repeat(np.tile([0.0, 4.0, 1.0, 0.0], 25), 20))
    read = []
    for phase in (0, 3, 7):
        times = np.arange(phase, 1000, 10)
        bytes_ = np.diff(moved[times * 2], prepend=moved[max(0, (phase - 10) * 2)])
        read.append(resampled(times, bytes_[None], 10, 100)[0, 2:-2])

    for one in read[1:]:
        assert one.sum() == pytest.approx(read[0].sum(), rel=0.05)
        assert np.corrcoef(one, read[0])[0, 1] > 0.8


def test_a_lost_row_has_the_mean_of_those_beside_it() -> None:
    times, bytes_ = np.arange(0, 100, 10), np.full((1, 10), 20.0)
    kept = np.arange(10) != 4

    assert resampled(times[kept], bytes_[:, kept], 10, 10) == pytest.approx(np.full((1, 10), 20.0))


@pytest.mark.simulated
def test_phases_of_reading_are_no_stages() -> None:
    """Agents that read once in ten slices, at two phases: by position in time all hosts would be in two groups."""
    job = replace(JOB, pp=1, dp=8, seconds=330.0)
    made = draw(job, np.random.default_rng(4))
    sums = [np.add.reduceat(one, np.arange(0, one.shape[2], 10), axis=2) for one in (made.tx, made.rx)]
    late = [np.add.reduceat(one, np.arange(5, one.shape[2], 10), axis=2) for one in (made.tx, made.rx)]
    rows = []
    for host in range(job.hosts):
        tx, rx = sums if host % 2 else late
        for rail in range(job.rails):
            for at in range(tx.shape[2]):
                second = at + (1.0 if host % 2 else 1.5) - 0.05
                row = {"job": "j0", "host": f"host/h{host}", "nic": f"nic/h{host}-{rail}", "rail": rail}
                moved = {"tx_bytes": round(tx[host, rail, at]), "rx_bytes": round(rx[host, rail, at])}
                rows.append({"time": round((EPOCH.timestamp() + second) * 1e9), **row, **moved})
    found = judge(ANALYZER, only_window({"nic_traffic": rows}), {})

    assert found["measures"]["dp"] in (None, 8)


def test_of_unrelated_traffic_no_skeleton_is_stated() -> None:
    rng = np.random.default_rng(7)
    noise = rng.exponential(1e6, (8, 4, 600))
    nics = tuple(tuple(f"nic/h{host}-{rail}" for rail in range(4)) for host in range(8))
    found = infer(Series("j0", tuple("abcdefgh"), nics, noise, noise, 0.1), check_params(ANALYZER, {}))
    assert found.stage is None
    assert found.reason


def test_silhouettes_are_as_defined() -> None:
    distance = np.array([[0, 1, 4, 5], [1, 0, 5, 4], [4, 5, 0, 2], [5, 4, 2, 0]], dtype=float)
    own = silhouettes(distance, np.array([0, 0, 1, 1]))
    assert own == pytest.approx([3.5 / 4.5, 3.5 / 4.5, 2.5 / 4.5, 2.5 / 4.5])


def test_the_published_job_has_nine_destinations_a_card() -> None:
    """512 cards, TP = PP = DP = 8: seven replicas and two stages, of 63 on the basic list."""
    nics = [[f"nic/h{host}-{rail}" for rail in range(8)] for host in range(64)]
    lists = peers(nics, [host // 8 for host in range(64)], [host % 8 for host in range(64)])
    assert len(lists["nic/h20-3"]) == 9
    assert len(peers(nics, None, None)["nic/h20-3"]) == 63
    assert share_of_mesh(lists) < 0.05


def test_a_wide_job_keeps_to_five_per_cent_of_the_full_mesh() -> None:
    nics = [[f"nic/h{host}-{rail}" for rail in range(8)] for host in range(256)]
    lists = peers(nics, [host // 128 for host in range(256)], [host % 128 for host in range(256)])
    assert share_of_mesh(lists) < 0.05
    assert {len(one) for one in lists.values()} == {14}


@pytest.mark.simulated
def test_rows_of_traffic_give_measures_and_a_table_of_hosts() -> None:
    rng = np.random.default_rng(3)
    rows = traffic_rows(draw(replace(JOB, seconds=60.0), rng), rng)
    found = judge(ANALYZER, only_window({"nic_traffic": rows}))
    assert {name: found["measures"][name] for name in ("tp", "pp", "dp")} == {"tp": 4, "pp": 2, "dp": 4}
    (piece,) = found["evidence"]
    assert piece["title"] == "Skeleton of job j0"
    assert len(piece["rows"]) == 8
