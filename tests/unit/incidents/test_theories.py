"""A theory, hop by hop: what supports it, what contradicts it, and what would test it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from incidents.domain.incident.onset import MetricOnset, MetricShifts
from incidents.domain.theories import Hop, JudgedHop, Known, hops_from, judge_hop, verdict_of
from incidents.domain.values import InvalidValueError

START = datetime(2026, 11, 21, 10, tzinfo=UTC)
HOP = Hop("switch/leaf1", "service/api")
KNOWN = Known(("switch/leaf1", "service/api"), ("service/api", "switch/leaf1"), False, {"service/api"})
NO_WAY = Known(("switch/leaf1", "service/api"), None, False, set())


def shifted(component: str, minute: float, width: float = 1) -> MetricOnset:
    at = START + timedelta(minutes=minute)
    half = timedelta(minutes=width / 2)
    return MetricOnset(component, "latency", at - half, at, at + half, 4.0)


def shifts(*found: MetricOnset, steady: tuple[str, ...] = ()) -> MetricShifts:
    return MetricShifts(found, frozenset(steady))


def ground(judged: JudgedHop, name: str) -> Any:
    (found,) = (one for one in judged.grounds if one.name == name)
    return found


ORDERED = shifts(shifted("switch/leaf1", 0), shifted("service/api", 5))


def test_a_hop_with_an_edge_and_the_right_order_is_supported() -> None:
    judged = judge_hop(HOP, KNOWN, ORDERED, [])
    assert judged.verdict == "supported"
    assert "service/api -> switch/leaf1" in ground(judged, "topology").text
    assert ground(judged, "control").verdict == "cannot be tested"
    assert ground(judged, "control").would_test


@pytest.mark.parametrize(
    ("known", "moved", "name", "verdict"),
    [
        (NO_WAY, ORDERED, "topology", "cannot be tested"),
        (Known((), None, False, set()), ORDERED, "topology", "cannot be tested"),
        (Known(NO_WAY.in_topology, None, True, set()), ORDERED, "topology", "cannot be tested"),
        (KNOWN, shifts(shifted("switch/leaf1", 9), shifted("service/api", 5)), "order", "contradicted"),
        (
            KNOWN,
            shifts(shifted("switch/leaf1", 5, 8), shifted("service/api", 5)),
            "order",
            "cannot be tested",
        ),
        (KNOWN, shifts(shifted("service/api", 5), steady=("switch/leaf1",)), "order", "contradicted"),
        (KNOWN, shifts(), "order", "cannot be tested"),
    ],
)
def test_each_ground_says_what_it_can(known: Known, moved: MetricShifts, name: str, verdict: str) -> None:
    judged = judge_hop(HOP, known, moved, [])
    found = ground(judged, name)
    assert found.verdict == verdict
    assert bool(found.would_test) == (verdict == "cannot be tested")
    assert judged.verdict == verdict


def test_what_does_not_depend_on_the_cause_has_to_stay_healthy() -> None:
    dependents = {f"service/s{n}" for n in range(4)}
    known = Known(KNOWN.in_topology, KNOWN.way, False, {"service/api", *dependents})
    hit = [shifted(name, 5) for name in sorted(dependents)]
    others = tuple(f"host/h{n}" for n in range(12))
    calm = shifts(*ORDERED.shifts, *hit, steady=others)
    assert ground(judge_hop(HOP, known, calm, []), "control").verdict == "supported"
    everywhere = shifts(*ORDERED.shifts, *hit, *(shifted(name, 5) for name in others))
    assert ground(judge_hop(HOP, known, everywhere, []), "control").verdict == "contradicted"


@pytest.mark.parametrize("dependents", [set(), {f"service/s{n}" for n in range(4)}])
def test_a_gap_in_the_topology_contradicts_no_hop_of_which_all_else_is_right(dependents: set[str]) -> None:
    """All dependents of the cause shifted, and the topology has none, or others than the effect."""
    hit = [shifted(f"service/s{n}", 5) for n in range(6)]
    moved = shifts(*ORDERED.shifts, *hit, steady=tuple(f"host/h{n}" for n in range(12)))
    judged = judge_hop(HOP, Known(NO_WAY.in_topology, None, False, dependents), moved, [])
    assert judged.verdict == "cannot be tested"
    assert {name: ground(judged, name).verdict for name in ("topology", "order", "control")} == {
        "topology": "cannot be tested",
        "order": "supported",
        "control": "cannot be tested",
    }
    assert "Send the dependency of service/api" in ground(judged, "topology").would_test


def test_a_theory_is_as_good_as_its_weakest_hop() -> None:
    late = shifts(shifted("switch/leaf1", 9), shifted("service/api", 5))
    right, wrong = judge_hop(HOP, KNOWN, ORDERED, []), judge_hop(HOP, KNOWN, late, [])
    unknown = judge_hop(HOP, KNOWN, shifts(), [])
    assert verdict_of([right]) == "supported"
    assert verdict_of([right, unknown]) == "cannot be tested"
    assert verdict_of([right, unknown, wrong]) == "contradicted"


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ([], "hops"),
        ("a -> b", "hops"),
        ([{"cause": "host/a"}], "hops[0].effect"),
        ([{"cause": "host/a", "effect": "b"}], "hops[0].effect"),
        ([{"cause": "host/a", "effect": "host/a"}], "hops[0].effect"),
        ([{"cause": "host/a", "effect": "host/b", "why": 1}], "hops[0].why"),
        ([{"cause": "host/a", "effect": "host/b", "at": "noon"}], "hops[0].at"),
        ([{"cause": "host/a", "effect": "host/b"}, {"cause": "host/c", "effect": "host/d"}], "hops[1].cause"),
        ([{"cause": "host/a", "effect": "host/b"}] * 11, "hops"),
    ],
)
def test_a_theory_that_cannot_be_read_is_refused_by_its_field(given: Any, field: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        hops_from(given)
    assert refused.value.field == field
