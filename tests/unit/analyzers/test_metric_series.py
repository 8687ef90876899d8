"""Tables of metrics."""

from __future__ import annotations

import math

import numpy as np
import pytest

from analyzers.builtin.metric_series import growth_of


def test_counters_grow_and_are_set_back() -> None:
    totals = np.array([[1.0, 3.0, np.nan, 7.0, 1.0, 2.0]])
    assert growth_of(totals).tolist()[0][1:] == pytest.approx([2, math.nan, 2, math.nan, 1], nan_ok=True)
