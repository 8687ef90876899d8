from __future__ import annotations

from collections import defaultdict

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import nic_traffic
from tests.worlds.nic_traffic import CARDS, CASES, PLANS, degrees, make


@pytest.fixture(autouse=True)
def _a_minute(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nic_traffic, "LENGTH", 60.0)


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "data_parallel")

    assert first == make(5, "data_parallel")
    assert first.rows != make(6, "data_parallel").rows


@pytest.mark.parametrize("case", swept(CASES, "inference"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


@pytest.mark.parametrize("case", swept(CASES, "four_stages"))
def test_a_dense_job_has_as_many_cards_as_its_degrees_say(case: str) -> None:
    told = degrees(case)
    cards = {row["nic"] for row in make(1, case).rows["nic_traffic"]}

    assert told is None or len(cards) == np.prod(told)


@pytest.mark.parametrize(
    "case", swept([case for case, plan in PLANS.items() if plan.experts >= 0.15], "experts_uneven")
)
def test_experts_receive_different_amounts_and_dense_cards_alike(case: str) -> None:
    assert spread(case) > 2 * spread("data_parallel")


def spread(case: str) -> float:
    """Spread of the bytes that cards of one rail receive over a minute; the first card reads data, too."""
    totals: dict[tuple[int, str], float] = defaultdict(float)
    for row in make(1, case).rows["nic_traffic"]:
        totals[row["rail"], row["nic"]] += row["rx_bytes"]
    rails = [[total for (rail, _), total in totals.items() if rail == one] for one in range(1, CARDS)]
    return float(np.mean([np.std(each) / np.mean(each) for each in rails]))
