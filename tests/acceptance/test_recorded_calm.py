"""Recorded stretches without a fault, judged by each other: nobody is blamed (needs `TRACES_DIR`)."""

from __future__ import annotations

import pytest

from tests.benchmarks.real_traces import directory, faults_of, split
from tests.benchmarks.trace_blame_recorded import verdict_on, window_of

TRACES = directory()

pytestmark = pytest.mark.skipif(
    TRACES is None, reason="TRACES_DIR is not set: the recorded traces are not here"
)

BLAMED_BEFORE = [("12:36:54", "13:52:20"), ("12:59:36", "12:36:54"), ("13:06:49", "13:52:20")]
"""The history and the judged stretch, each before the fault of that time: version 1.2 named a service at .93 to .97."""


@pytest.mark.parametrize(("before", "judged"), BLAMED_BEFORE)
def test_a_stretch_before_a_fault_blames_nobody_by_another_one(before: str, judged: str) -> None:
    assert TRACES is not None
    faults = {fault.injected_at[11:]: fault for fault in faults_of(TRACES, "train-ticket")}
    history = window_of(split(faults[before])[0])
    verdict = verdict_on(window_of(split(faults[judged])[0], (history,)))
    assert verdict.suspects == ()
