"""Anomalies of skeletonhunter, and what it does not take for one."""

import numpy as np
import pytest
from numpy.typing import NDArray

from analyzers.builtin.skeletonhunter import ANALYZER
from analyzers.builtin.skeletonhunter.detect import detect, outlier_factors, rank_z
from analyzers.builtin.skeletonhunter.observed import GRACE, observe
from analyzers.contract import check_params
from tests.unit.analyzers.skeletonhunter.cases import made

pytestmark = pytest.mark.simulated

Floats = NDArray[np.float64]


@pytest.mark.parametrize("absent", [0, 3])
def test_outlier_factors_are_those_of_scikit_learn(absent: int) -> None:
    from sklearn.neighbors import LocalOutlierFactor

    rng = np.random.default_rng(3)
    kept, new = rng.normal(size=(20, 10, 7)), 2 * rng.normal(size=(20, 7))
    kept[:, 10 - absent :] = np.nan
    expected = [
        -LocalOutlierFactor(n_neighbors=5, novelty=True).fit(old[: 10 - absent]).score_samples([one])[0]
        for old, one in zip(kept, new, strict=True)
    ]
    assert outlier_factors(kept, new) == pytest.approx(np.array(expected))


def test_ranks_tell_a_shift_of_slices() -> None:
    rng = np.random.default_rng(5)
    assert rank_z(rng.normal(1.0, 0.1, 10), rng.normal(0.0, 0.1, 60)) > 3.0
    assert abs(rank_z(rng.normal(0.0, 0.1, 10), rng.normal(0.0, 0.1, 60))) < 3.0


def test_few_slices_of_a_healthy_network_are_late() -> None:
    seen = observe(made(3, ())[0])
    found = detect(seen, check_params(ANALYZER, {}))
    assert found.late.mean() < 0.003
    assert not found.drifted.any()
    assert not found.level.any()


def test_a_network_that_is_late_as_a_whole_has_no_late_pairs_among_the_others() -> None:
    seen = observe(made(3, (), "congestion")[0])
    found = detect(seen, check_params(ANALYZER, {}))
    assert found.late.mean() < 0.2
    assert float(np.nanmedian(found.limit)) < np.log(25.0)


def test_an_endpoint_counts_from_its_registration_on() -> None:
    window, _ = made(3, (), "start_up")
    seen = observe(window)
    late = {one.name for one in seen.endpoints.values() if one.since > 0}
    assert late
    for at, (src, dst, layer) in enumerate(seen.pairs):
        if layer == "overlay" and {src, dst} & late:
            assert not seen.judged[at, seen.first : seen.first + 5].any()
            assert seen.judged[at, seen.first + 5 :].all()


def test_an_endpoint_counts_until_before_its_end() -> None:
    window, truth = made(3, (), "elastic_resize")
    seen = observe(window)
    slices = int((120 - GRACE.total_seconds()) // 30)
    touched = ~seen.judged[:, seen.now].all(axis=1)
    assert touched.any()
    assert seen.judged[touched, seen.first : seen.first + slices].all()
    assert not (seen.lost * seen.judged).any()
    assert truth["faults"] == []
