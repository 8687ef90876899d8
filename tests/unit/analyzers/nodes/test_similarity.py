"""Similarity of samples: the fast way against the definition, and what the fleet takes for normal."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from analyzers.builtin.nodes import similarity
from analyzers.builtin.nodes.samples import direction_of, words_given

Floats = NDArray[np.float64]


def area_between(one: Floats, other: Floats, only_where_lower: bool = False) -> float:
    """The area between two empirical distribution functions, step by step over all values: the definition."""
    grid = np.unique(np.concatenate([one, other]))
    total = 0.0
    for low, high in pairwise(grid):
        gap = np.mean(one <= low) - np.mean(other <= low)
        total += (max(gap, 0) if only_where_lower else abs(gap)) * (high - low)
    return total


def kept(values: Floats) -> Floats:
    """The runs that count: the best and the worst do not from eight on."""
    return np.sort(values)[1:-1] if len(values) >= similarity.TRIMMED_FROM else np.sort(values)


def quantiles(samples: list[Floats]) -> tuple[Floats, NDArray[np.int64]]:
    runs = np.array([len(one) for one in samples])
    starts = np.concatenate([[0], np.cumsum(runs)[:-1]])
    values = np.concatenate([np.sort(one) for one in samples])
    size = similarity.grid_size(runs)
    return similarity.quantiles_of(values, np.ones(len(values), dtype=np.int64), starts, size)


def drawn(seed: int, nodes: int, runs: int) -> list[Floats]:
    rng = np.random.default_rng(seed)
    return [rng.normal(100, 2, runs).round(1) for _ in range(nodes)]


@pytest.mark.parametrize("runs", [1, 7, 30])
def test_distances_are_the_area_between_distributions(runs: int) -> None:
    samples = drawn(1, 6, runs)
    curves, _ = quantiles(samples)
    centre = curves[2]
    expected = [area_between(kept(one), kept(samples[2])) / 100 for one in samples]
    assert similarity.distances(curves, centre, 100) == pytest.approx(expected)


def test_the_worse_part_counts_only_where_runs_are_lower() -> None:
    samples = drawn(2, 5, 20)
    curves, _ = quantiles(samples)
    expected = [area_between(kept(one), kept(samples[0]), only_where_lower=True) / 100 for one in samples]
    assert similarity.worse_by(curves, curves[0], 100, higher=True) == pytest.approx(expected)


def test_samples_of_different_length_are_compared_nearly_as_exactly() -> None:
    samples = [drawn(3, 1, runs)[0] for runs in (12, 30, 55, 300)]
    curves, runs = quantiles(samples)
    expected = [area_between(kept(one), kept(samples[0])) / 100 for one in samples]
    assert runs.tolist() == [12, 30, 55, 300]
    assert similarity.distances(curves, curves[0], 100) == pytest.approx(expected, abs=1e-3)


def test_values_that_repeat_count_as_often_as_they_occurred() -> None:
    curves, runs = similarity.quantiles_of(
        np.array([1.0, 2.0, 5.0]), np.array([1, 3, 2]), np.array([0, 2]), 4
    )
    assert runs.tolist() == [4, 2]
    assert curves.tolist() == [[1, 2, 2, 2], [5, 5, 5, 5]]


def test_the_sum_of_distances_is_that_over_all_pairs() -> None:
    curves, _ = quantiles(drawn(4, 30, 11))
    pairs = np.abs(curves[:, None, :] - curves[None, :, :]).mean(axis=2).sum(axis=1)
    assert similarity.total_distances(curves) == pytest.approx(pairs)
    assert similarity.medoid(curves) == int(np.argmin(pairs))


def test_of_equally_near_samples_the_lower_is_the_medoid_in_any_order() -> None:
    curves = np.array([[2.0, 2.0], [1.0, 1.0]])
    assert (similarity.medoid(curves), similarity.medoid(curves[::-1])) == (1, 0)


def plain_criteria(samples: list[Floats], alpha: float) -> set[int]:
    """The loop of the paper, on all pairs: the medoid, then only what is similar to it, until nothing changes."""
    active = list(range(len(samples)))
    while True:
        total = [sum(area_between(kept(samples[i]), kept(samples[j])) for j in active) for i in active]
        centre = kept(samples[active[int(np.argmin(total))]])
        similar = [i for i in active if 1 - area_between(kept(samples[i]), centre) / centre.mean() >= alpha]
        if similar == active:
            return set(active)
        active = similar


@pytest.mark.simulated
@pytest.mark.parametrize("seed", range(3))
def test_criteria_are_learnt_as_the_plain_loop_learns_them(seed: int) -> None:
    rng = np.random.default_rng(seed)
    samples = [rng.normal(100 * rng.choice([1, 1, 1, 0.93, 0.8]), 1, 12) for _ in range(16)]
    curves, runs = quantiles(samples)
    learnt = similarity.learn(curves, runs, 0.95)
    assert learnt is not None
    assert set(np.flatnonzero(learnt.accepted).tolist()) == plain_criteria(samples, 0.95)


def test_nothing_is_learnt_where_the_usual_value_is_zero() -> None:
    assert similarity.learn(np.zeros((30, 4)), np.full(30, 4), 0.95) is None


def test_one_absurd_reading_does_not_move_a_sample() -> None:
    clean = drawn(5, 1, 30)[0]
    hit = clean.copy()
    hit[0] *= 100
    curves, _ = quantiles([clean, hit])
    assert similarity.distances(curves, curves[0], 100)[1] < 0.01


def test_fewer_runs_may_scatter_more() -> None:
    curves, runs = quantiles(drawn(6, 40, 30))
    learnt = similarity.learn(curves, runs, 0.95)
    assert learnt is not None
    few, usual = similarity.scatter(replace(learnt, spread=0.005), np.array([1, 30]))
    assert few > 2 * usual


@pytest.mark.parametrize(
    ("benchmark", "metric", "direction"),
    [
        ("mem-bw", "h2d_bw:3", "higher"),
        ("mem-bw", "H2D_Mem_BW:0", "higher"),
        ("gemm-flops", "FP16:2", "higher"),
        ("gemm-flops", "BF16_TC:3", "higher"),
        ("nccl-bw", "allreduce_8589934592_time", "lower"),
        ("nccl-bw", "allreduce_8589934592_busbw:0", "higher"),
        ("ib-loopback", "IB_write_4096_Avg_0:0", "higher"),
        ("gpu-sm-copy-bw", "dtoh:17", "higher"),
        ("gpt_models/pytorch-gpt2-large", "fp16_train_step_time", "lower"),
        ("bert_models/pytorch-bert-base", "steptime_train_float32", "lower"),
        ("bert_models/pytorch-bert-base", "throughput_train_float32", "higher"),
        ("kernel-launch", "event_overhead:7", "lower"),
        ("disk-benchmark", "nvme0n1_rand_read_read_iops", "higher"),
        ("cpu-memory-bw-latency", "mem_max_bandwidth_all_reads_lat", "lower"),
        ("mem-bw", "return_code", "zero"),
        ("monitor", "gpu_uncorrected_ecc:0", "zero"),
        ("monitor", "gpu_temperature:3", None),
    ],
)
def test_the_words_of_a_metric_tell_which_way_is_worse(
    benchmark: str, metric: str, direction: str | None
) -> None:
    assert direction_of(benchmark, metric) == direction


def test_words_of_the_caller_go_first() -> None:
    assert direction_of("mine", "score") is None
    assert direction_of("mine", "score", higher=words_given("score, points")) == "higher"
    assert direction_of("mine", "wait_bw", lower=words_given("bw")) == "lower"
