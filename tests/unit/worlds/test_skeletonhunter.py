from __future__ import annotations

from datetime import datetime

import numpy as np
import pytest

from tests.unit.worlds.cases import assert_readable, swept
from tests.worlds import Fault, Row, World
from tests.worlds.skeletonhunter import CASES, PLANS, TYPES, make

HEALTHY = [case for case, plan in PLANS.items() if not plan.faults]
FAULTY = [case for case in CASES if case not in HEALTHY]
LOSES = (
    *("link_loss", "port_down", "port_flapping", "spine_down", "switch_offline"),
    *("card_down", "card_loss", "card_flapping", "container_crash", "rule"),
)


def test_the_same_seed_gives_the_same_rows() -> None:
    first = make(5, "healthy_pair")

    assert first == make(5, "healthy_pair")
    assert first.rows != make(6, "healthy_pair").rows


@pytest.mark.parametrize("case", swept(CASES, "healthy_pair"))
def test_the_rows_of_a_case_pass_the_wire_format(case: str) -> None:
    assert_readable(make(2, case))


@pytest.mark.parametrize("case", swept(HEALTHY, "healthy_pair"))
def test_no_fault_is_active_in_the_judged_windows_of_a_healthy_case(case: str) -> None:
    world = make(1, case)

    assert all(fault.end <= world.judged_from for fault in world.faults)


@pytest.mark.parametrize("case", swept(HEALTHY, "healthy_pair"))
def test_no_probe_is_sent_before_both_of_its_endpoints_are_ready(case: str) -> None:
    world = make(1, case)
    if PLANS[case].skew:
        return
    ready: dict[str, str] = {}
    for row in world.rows["endpoint"]:
        ready.setdefault(row["endpoint"], row["time"])
    for row in world.rows["probe"]:
        if row["layer"] == "overlay":
            assert max(ready[row["src"]], ready[row["dst"]]) <= row["time"]


@pytest.mark.parametrize(
    "case", [*swept(FAULTY, "rule_missing"), *swept(TYPES, "type_suboptimal_offloading")]
)
def test_probes_that_a_fault_strikes_are_lost_or_late(case: str) -> None:
    world = make(1, case)
    assert any(fault.end > world.judged_from for fault in world.faults)
    for fault in world.faults:
        hit, rest = parted(world, fault)
        assert len({(row["src"], row["dst"]) for row in hit}) >= 2, fault
        if fault.kind.startswith(LOSES):
            assert lost(hit) > max(0.02, 3 * lost(rest)), fault
        else:
            assert late(hit) > late(rest) + 2.0, fault


def parted(world: World, fault: Fault) -> tuple[list[Row], list[Row]]:
    """Overlay probes in the time of a fault: those that name a component of it, and the others."""
    names = {fault.component, *fault.acceptable}
    places = {name.partition("/")[2] for name in names if name.startswith(("host/", "vswitch/"))}
    only = fault.kind in (
        "link_loss",
        "port_down",
        "port_flapping",
        "spine_down",
        "switch_offline",
        "tor_slow",
        "queue_slow",
        "card_down",
        "card_flapping",
        "card_loss",
        "card_slow",
    )
    hit: list[Row] = []
    rest: list[Row] = []
    for row in world.rows["probe"]:
        when = datetime.fromisoformat(row["time"])
        if row["layer"] != "overlay" or not fault.start <= when < fault.end:
            continue
        passed = {*row["hops"], row["src"], row["dst"]}
        struck = fault.component in passed if only else bool(names & passed or places & passed)
        (hit if struck else rest).append(row)
    return hit, rest


def lost(rows: list[Row]) -> float:
    return float(sum(row["lost"] for row in rows) / max(1, sum(row["sent"] for row in rows)))


def late(rows: list[Row]) -> float:
    return float(np.mean([time for row in rows for time in row["rtt_us"] if time < 200]))
