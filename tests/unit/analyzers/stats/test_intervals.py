"""The sweep over intervals against a slow, obvious reference."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from analyzers.builtin.stats.intervals import main_label, spells, sweep

LOW, HIGH, OWNERS, LABELS = 5, 25, 3, 2
rows = st.lists(
    st.tuples(st.integers(0, OWNERS - 1), st.integers(0, 30), st.integers(0, 12), st.integers(0, LABELS - 1)),
    max_size=12,
)
Rows = list[tuple[int, int, int, int]]


def swept(given: Rows):  # type: ignore[no-untyped-def]
    table = np.array(given, dtype=np.int64).reshape(-1, 4)
    owner, start, length, label = table.T
    return sweep(owner, start, start + length, label, LABELS, LOW, HIGH)


def moments(given: Rows, owner: int, label: int) -> set[int]:
    """The whole moments at which a label is in force."""
    mine = [(s, s + length) for o, s, length, kind in given if (o, kind) == (owner, label)]
    return {t for s, e in mine for t in range(max(s, LOW), min(e, HIGH))}


@given(rows)
def test_segments_hold_exactly_the_moments_of_their_labels(given: Rows) -> None:
    pieces = swept(given)
    for owner in range(OWNERS):
        for label in range(LABELS):
            mine = np.flatnonzero((pieces.owner == owner) & pieces.active[label])
            found = {t for i in mine for t in range(int(pieces.start[i]), int(pieces.end[i]))}
            assert found == moments(given, owner, label)


@given(rows)
def test_spells_are_the_longest_stretches_without_a_break(given: Rows) -> None:
    pieces = swept(given)
    found = spells(pieces, pieces.any([0, 1]))
    seen = [(int(o), int(s), int(e)) for o, s, e in zip(found.owner, found.start, found.end, strict=True)]
    expected = []
    for owner in range(OWNERS):
        held = sorted(moments(given, owner, 0) | moments(given, owner, 1))
        begins = [t for t in held if t - 1 not in held]
        expected += [(owner, t, next(e for e in range(t, HIGH + 1) if e not in held)) for t in begins]
    assert seen == expected


def test_the_main_label_is_the_one_in_force_for_longest() -> None:
    pieces = swept([(0, 6, 2, 0), (0, 8, 9, 1), (1, 6, 3, 0)])
    found = spells(pieces, pieces.any([0, 1]))
    assert main_label(pieces, found, [0, 1]).tolist() == [1, 0]


def test_time_is_told_in_minutes() -> None:
    minute = 60_000_000
    owner, label = np.zeros(1, np.int64), np.zeros(1, np.int64)
    pieces = sweep(owner, np.array([0]), np.array([3 * minute]), label, 1, minute, 10 * minute)
    assert pieces.time(pieces.active[0], 2).tolist() == [2.0, 0.0]
