from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import numpy as np
import pytest

from tests.worlds import Fault, World
from tests.worlds.trace_blame import (
    BASE_NS,
    CASES,
    EVERY,
    FAULT_FROM,
    HISTORY,
    PLANS,
    START,
    make,
    make_logged,
    prepare,
)

Row = Mapping[str, Any]
FEW = range(FAULT_FROM - 1, FAULT_FROM + 1)
"""A window before the faults, and the first with them."""


@pytest.mark.parametrize("case", ["healthy_skewed", "exception_sparse", "deploy"])
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    world = make(2, case, FEW)
    assert world.tables()["span"].count == len(world.rows["span"])


def test_the_same_seed_gives_the_same_rows_and_lines() -> None:
    first, second = (make_logged(5, "exception_sparse", FEW) for _ in "ab")
    assert first == second


def planned(seed: int, case: str) -> list[str]:
    _, _, faults, _ = prepare(seed, case)
    return [fault.kind for fault in faults if fault.end > START + HISTORY * EVERY]


@pytest.mark.parametrize(("place", "case"), list(enumerate(CASES)))
def test_a_case_has_the_faults_that_it_names(place: int, case: str) -> None:
    assert planned(place % 3, case) == list(PLANS[case].faults)


@pytest.mark.soak
@pytest.mark.parametrize("case", CASES)
def test_a_case_has_the_faults_that_it_names_on_every_graph(case: str) -> None:
    assert [planned(seed, case) for seed in range(8)] == [list(PLANS[case].faults)] * 8


@pytest.mark.parametrize(
    ("case", "seed"), [("cpu", 0), ("cpu", 3), ("database", 1), ("bad_pod", 2), ("lasting", 1)]
)
def test_a_slow_component_has_longer_own_times(case: str, seed: int) -> None:
    begins = HISTORY // 2 if PLANS[case].lasting else FAULT_FROM
    world = make(seed, case, range(begins - 1, begins + 1))
    before, during = own_times(world)
    assert np.median(during) > 2.5 * np.median(before)


@pytest.mark.parametrize("case", ["network", "network_search"])
def test_a_network_delay_lies_between_the_spans_of_both_sides(case: str) -> None:
    world = make(1, case, FEW)
    before, during = gaps(world)
    assert np.median(during) > np.median(before) + 60_000


@pytest.mark.parametrize("seed", [1, 3])
def test_a_changed_return_lessens_the_calls_of_its_service(seed: int) -> None:
    world = make(seed, "return_all", FEW)
    fault = world.faults[0]
    service = fault.component.partition("/")[2]
    parents = {row["span"] for row in world.rows["span"] if row["service"] == service and "parent" in row}
    children = [row for row in world.rows["span"] if row.get("parent") in parents]
    before, during = (sum(is_during(row, fault) is here for row in children) for here in (False, True))
    assert during < 0.7 * before


def test_more_load_of_one_group_of_clients_reaches_the_services_that_it_asks_and_no_others() -> None:
    app, _, faults, _ = prepare(2, "group_load")
    assert faults == []
    assert min(app.surge.values()) == 1.0
    assert max(app.surge.values()) > 2.0
    world = make(2, "group_load", FEW)
    asked = [row for row in world.rows["span"] if f"{row['service']}.{row['operation']}" == app.group]
    during = sum(row["time"] >= BASE_NS + FAULT_FROM * EVERY.seconds * 10**9 for row in asked)
    assert during > 2 * (len(asked) - during)


def test_an_exception_shows_in_the_log_of_its_service_even_if_no_span_is_flagged() -> None:
    world, lines = make_logged(1, "exception_silent", FEW)
    fault = world.faults[0]
    thrown: dict[str, int] = defaultdict(int)
    for line in lines:
        inside = fault.start <= datetime.fromisoformat(line["time"]) < fault.end
        thrown[line["service"]] += inside and "unhandled" in line["message"]
    assert f"service/{max(thrown, key=lambda one: thrown[one])}" == fault.component
    assert thrown[fault.component.partition("/")[2]] >= 8


def is_during(row: Row, fault: Fault) -> bool:
    at = (row["time"] - BASE_NS) / 1e9
    return bool((fault.start - START).total_seconds() <= at < (fault.end - START).total_seconds())


def own_times(world: World) -> tuple[list[float], list[float]]:
    """Durations less those of the children, of the spans of the faulty component, before and during the fault."""
    fault = world.faults[0]
    kind, _, name = fault.component.partition("/")
    column = "service" if kind == "service" else "instance"
    inside: dict[str, float] = defaultdict(float)
    for row in world.rows["span"]:
        inside[row.get("parent", "")] += row["duration_us"]
    before: list[float] = []
    during: list[float] = []
    for row in world.rows["span"]:
        if (
            row[column] == name
            and "/" not in row["operation"]
            and inside[row["span"]] < 0.8 * row["duration_us"]
        ):
            (during if is_during(row, fault) else before).append(row["duration_us"] - inside[row["span"]])
    return before, during


def gaps(world: World) -> tuple[list[float], list[float]]:
    """Time of a call of the faulty service beyond its work there, before and during the fault."""
    fault = world.faults[0]
    service = fault.component.partition("/")[2]
    served = {
        row.get("parent"): row["duration_us"] for row in world.rows["span"] if row["service"] == service
    }
    before: list[float] = []
    during: list[float] = []
    for row in world.rows["span"]:
        if row["span"] in served and row["operation"].startswith(f"{service}/"):
            (during if is_during(row, fault) else before).append(row["duration_us"] - served[row["span"]])
    return before, during
