"""Answers of Boolean methods stand beside Deepview's verdict."""

from typing import Any

import pytest

from analyzers.builtin.deepview import evidence
from analyzers.builtin.paths import METHODS, TITLE
from tests.unit.analyzers.deepview.cases import grid, verdict_on, window_of

S1 = "storage_cluster/s1"
GRAY = {path: 20 for path in grid() if S1 in path}


def opinions(verdict: dict[str, Any]) -> dict[str, Any]:
    (found,) = (one for one in verdict["evidence"] if one["title"] == TITLE)
    return dict(found)


@pytest.mark.parametrize("method", ["binomial", "lasso"])
def test_every_method_is_heard_beside_the_verdict(method: str) -> None:
    shown = opinions(verdict_on(window_of(grid(), GRAY), method=method))
    assert [row[1] for row in shown["rows"]] == [S1] * len(METHODS)


def test_agreement_is_said() -> None:
    shown = opinions(verdict_on(window_of(grid(), GRAY)))
    assert {row[2] for row in shown["rows"]} == {"all of the blamed"}


def test_where_a_simple_method_differs_is_said() -> None:
    spared = {path: count for path, count in GRAY.items() if "compute_cluster/c0" not in path}
    verdict = verdict_on(window_of(grid(), spared))
    assert [one["component"] for one in verdict["suspects"]] == [S1]
    tomography = opinions(verdict)["rows"][METHODS.index("tomo")]
    assert tomography[1:] == ["none", "none of the blamed"]


def test_bad_paths_are_counted_on_the_paths_of_the_window() -> None:
    note = opinions(verdict_on(window_of(grid(), GRAY)))["text"]
    assert note.startswith("4 of 16 paths count as bad here")


def test_failures_of_hosts_on_one_path_are_counted_together() -> None:
    failing: dict[tuple[str, ...], int] = {("compute_cluster/c0", S1, f"host/h{n}"): 1 for n in range(9)}
    note = opinions(verdict_on(window_of(grid(units=1_000), failing)))["text"]
    assert note.startswith("1 of 16 paths count as bad here")


def test_a_window_without_failures_asks_nobody() -> None:
    verdict = verdict_on(window_of(grid(), {}))
    assert TITLE not in {one["title"] for one in verdict["evidence"]}


def test_above_a_size_they_are_not_asked_and_that_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(evidence, "MOST_PATHS", 15)
    assert "at most 15 paths" in opinions(verdict_on(window_of(grid(), GRAY)))["text"]
