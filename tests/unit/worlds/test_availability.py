from __future__ import annotations

from collections import Counter
from datetime import datetime

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import World
from tests.worlds.availability import ALLOWED, CASES, MONTH, MONTHS, PLANS, START, make

INNOCENT = [case for case, plan in PLANS.items() if not plan.bad]


@pytest.mark.parametrize("case", swept(CASES, "healthy_few", "often_endless", "maintenance"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


def test_the_same_seed_gives_the_same_rows() -> None:
    assert make(5, "often_few") == make(5, "often_few")
    assert make(5, "often_few").rows != make(6, "often_few").rows


@pytest.mark.parametrize("case", swept(INNOCENT, "healthy_few", "healthy_outages"))
def test_a_case_without_bad_units_has_no_fault(case: str) -> None:
    assert make(1, case).faults == ()


@pytest.mark.parametrize("case", ["often_few", "often_outages", "slow", "nightly", "long"])
def test_a_faulty_month_loses_three_times_what_is_allowed(case: str) -> None:
    world = make(3, case)
    lost = minutes_lost(world)
    assert len(world.faults) >= MONTHS - 1
    for fault in world.faults:
        assert lost[fault.component, (fault.start - START) // MONTH] >= 3 * ALLOWED


def minutes_lost(world: World) -> Counter[tuple[str, int]]:
    """Unplanned minutes down by unit and month; an outage over the end of a month counts in both."""
    lost = Counter[tuple[str, int]]()
    down = [(row["unit"], row) for row in world.rows.get("uptime", ()) if row["state"] == "down"]
    down += [
        (row["device"], row) for row in world.rows.get("outage", ()) if "end" in row and "planned" not in row
    ]
    for unit, row in down:
        begun, over = (datetime.fromisoformat(row[edge]) for edge in ("start", "end"))
        for month in range(MONTHS):
            first = START + month * MONTH
            spent = (min(over, first + MONTH) - max(begun, first)).total_seconds() / 60
            lost[unit, month] += round(max(spent, 0))
    return lost
