from __future__ import annotations

from collections import Counter

import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import World
from tests.worlds.tor_availability import CASES, CLASS, LEMON, MONTH, MONTHS, PLANS, START, make

ALIKE = ("class_misses", "class_misses_badly", "few", "firmware_everywhere")
QUIET = ("healthy", "healthy_few", "maintenance", "other_class")


@pytest.mark.parametrize(
    "case", swept(CASES, *(case for case in CASES if case not in ("maintenance", "short")))
)
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


def test_the_same_seed_gives_the_same_rows() -> None:
    assert make(5, "lemon_in_noise") == make(5, "lemon_in_noise")
    assert make(5, "lemon_in_noise").rows != make(6, "lemon_in_noise").rows


@pytest.mark.parametrize("case", swept(QUIET, *(case for case in QUIET if case != "maintenance")))
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_a_healthy_class_meets_its_target(case: str, seed: int) -> None:
    assert make(seed, case).faults == ()


@pytest.mark.parametrize("case", [name for name, plan in PLANS.items() if plan.lemons and not plan.no_end])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_lemons_have_the_most_outages_of_every_month(case: str, seed: int) -> None:
    world = make(seed, case)
    lemons = {fault.component for fault in world.faults if fault.kind == "lemon"}
    for counts in monthly(world):
        others = [count for device, count in counts.items() if device not in lemons]
        assert min(counts[one] for one in lemons) >= LEMON > max(others, default=0)


@pytest.mark.parametrize("case", swept((*ALIKE, "short"), *ALIKE))
def test_nobody_stands_out_where_only_the_class_misses(case: str) -> None:
    world = make(3, case)
    assert {fault.component for fault in world.faults} == {CLASS}
    assert len(world.faults) >= MONTHS // 2
    most = max(count for counts in monthly(world) for count in counts.values())
    assert most < LEMON or case == "short"


@pytest.mark.parametrize(("case", "kind"), [("lemon_firmware", "common_firmware"), ("power", "common_power")])
def test_a_common_cause_has_half_of_the_outages_of_its_months(case: str, kind: str) -> None:
    world = make(1, case)
    months = monthly(world)
    for fault in world.faults:
        if fault.kind == kind:
            counts = months[(fault.start - START) // MONTH]
            assert sum(counts[one] for one in fault.acceptable) > 0.5 * sum(counts.values())


def monthly(world: World) -> list[Counter[str]]:
    """Outages by device for each month."""
    found: list[Counter[str]] = []
    for month in range(MONTHS):
        first, last = ((START + (month + i) * MONTH).isoformat() for i in (0, 1))
        found.append(Counter(row["device"] for row in world.rows["outage"] if first <= row["start"] < last))
    return found
