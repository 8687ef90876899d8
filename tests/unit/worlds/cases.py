"""Parts shared by tests of `tests.worlds`: cases that the fast suite runs, and a sample of rows for the wire format."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest
from _pytest.mark import ParameterSet

from tests.worlds import World

SAMPLE = 400
"""Rows of a kind that the fast check of the wire format reads."""


def swept(cases: Iterable[str], *fast: str) -> list[ParameterSet]:
    """All cases as test parameters; those that are not `fast` run with `make soak` only.

    Raises ValueError for a fast case that does not exist.
    """
    known = tuple(cases)
    if unknown := set(fast) - set(known):
        raise ValueError(f"no case {', '.join(sorted(unknown))}")
    return [pytest.param(case, marks=() if case in fast else pytest.mark.soak) for case in known]


def sampled(world: World) -> World:
    """The world with at most about `SAMPLE` rows a kind, evenly chosen: reading every row is most of the time."""
    return replace(
        world, rows={kind: rows[:: max(1, len(rows) // SAMPLE)] for kind, rows in world.rows.items()}
    )


def assert_readable(world: World) -> None:
    """Asserts that the wire format takes the rows of each kind."""
    some = sampled(world)
    for kind, table in some.tables().items():
        assert table.count == len(some.rows[kind]) > 0
