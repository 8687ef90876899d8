"""Components that a window held."""

from __future__ import annotations

import numpy as np
import pytest

from analyzers.contract import INVENTORY, Sums
from analyzers.runs.windows import WindowSums, rows_naming
from analyzers.simulators.tables import paths_of

PATHS = Sums(
    keys={"components": paths_of([("link/a", "tor/1"), ("link/b", "tor/1"), ("link/c",)])}, values={}, rows=3
)
PAIRS = Sums(keys={"src": ("host/1", "host/2"), "slice": np.array([0, 1])}, values={}, rows=2)
FLEET = Sums(keys={"component": ("host/3", "host/4")}, values={}, rows=2)
SEEN = WindowSums({"paths": PATHS, "pairs": PAIRS, INVENTORY: FLEET})


@pytest.mark.parametrize(("component", "rows"), [("tor/1", [0, 1]), ("link/c", [2]), ("link/z", [])])
def test_rows_of_paths_that_name_a_component(component: str, rows: list[int]) -> None:
    assert rows_naming(PATHS, frozenset({component})).tolist() == rows


@pytest.mark.parametrize(("component", "held"), [("host/2", True), ("link/b", True), ("host/3", False)])
def test_a_window_holds_what_any_of_its_keys_name(component: str, held: bool) -> None:
    assert SEEN.names({component, "tor/unknown"}) == held


@pytest.mark.parametrize(("other", "beside"), [("link/a", True), ("link/c", False), ("host/1", False)])
def test_components_are_beside_each_other_on_one_row(other: str, beside: bool) -> None:
    assert SEEN.beside({"tor/1"}, other) == beside
