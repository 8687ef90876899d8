from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds.config_risk import BAD_VALUE, CASES, make


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "sparse")

    assert first == make(5, "sparse")
    assert first.rows != make(6, "sparse").rows


@pytest.mark.parametrize("case", swept(CASES, "sparse"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


def test_changes_with_the_bad_value_are_bad_more_often() -> None:
    world = make(3, "value")
    bad = {row["change"] for row in world.rows["change_outcome"]}
    found: Counter[tuple[bool, bool]] = Counter()
    for row in {one["change"]: one for one in world.rows["change"]}.values():
        found[row["settings"].get(BAD_VALUE[0]) == BAD_VALUE[1], row["change"] in bad] += 1

    assert found[True, True] / (found[True, True] + found[True, False]) > 0.15
    assert found[False, True] / (found[False, True] + found[False, False]) < 0.05
