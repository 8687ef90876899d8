"""The open incident of another component that a finding is about, by the topology."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import timedelta

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.alerts import Links
from incidents.domain.incident.finding import Finding, candidates, join_of
from incidents.domain.incident.outcome import analyzer_outcomes
from incidents.domain.incident.state import Incident
from incidents.domain.values import rfc3339
from tests.unit.incidents.incident.cases import NOON, after, blamed, finding

RANK, NIC, NODE, LINK, RACK = "rank/17", "nic/n2-1", "node/n2", "link/n2-1~t0", "rack/r1"
OTHER_RANK, OTHER_NIC = "rank/16", "nic/n2-0"
LINKS = {
    RANK: Links(parents=(NODE,), depends_on=(NIC,)),
    OTHER_RANK: Links(parents=(NODE,), depends_on=(OTHER_NIC,)),
    NIC: Links(parents=(NODE,), depends_on=(LINK,)),
    OTHER_NIC: Links(parents=(NODE,)),
    NODE: Links(parents=(RACK,)),
}


def says(analyzer: str, component: str, score: float = 0.93, forecast: bool = False) -> Finding:
    named = {"c4d": "transfer delay", "skeletonhunter": "latency"}
    said = finding(
        component, analyzer=analyzer, score=score, schedule=analyzer, failure_rate=None, forecast=forecast
    )
    return replace(said, indicator=named.get(analyzer, ""), phrase="is slow")


def incident(analyzer: str, component: str, number: int = 1) -> Incident:
    return after(blamed(says(analyzer, component), number))


def joined(state: Incident, new: Finding, beside: Sequence[str] = ()) -> Incident | None:
    """The incident after the finding, None where the finding does not join it."""
    others = [frozenset([one]) for one in beside]
    found = join_of(new, candidates(new, [state], others), others, LINKS)
    return None if found is None else after(c.JoinFinding(new, relation=found.relation), state=state)


@pytest.mark.parametrize(
    "order", [(RANK, NODE, NIC), (NODE, RANK, NIC), (NIC, RANK, NODE), (NODE, NIC, RANK), (RANK, NIC, NODE)]
)
def test_rank_card_and_node_are_one_incident_of_the_card_in_any_order(order: tuple[str, ...]) -> None:
    of = {RANK: "c4d", NODE: "straggler", NIC: "skeletonhunter"}
    state: Incident | None = incident(of[order[0]], order[0])
    for component in order[1:]:
        assert state is not None
        state = joined(state, says(of[component], component))
    assert state is not None
    assert state.component == NIC
    assert state.covers == {RANK, NIC, NODE}
    assert state.title == f"{NIC} is slow"
    assert state.confidence is not None
    assert state.confidence > 0.99
    assert state.verdict == (
        f"{NIC} is slow, over 99 % likely at fault as skeletonhunter, c4d and straggler agree."
    )


def test_a_related_component_that_is_named_again_agrees() -> None:
    state = joined(incident("skeletonhunter", NIC), says("c4d", RANK))
    assert state is not None
    again = after(c.JoinFinding(says("c4d", RANK, 0.95)), state=state)
    assert {one.stance for one in again.opinions.values()} == {"blames"}
    assert (again.component, again.title) == (NIC, f"{NIC} is slow")


def test_the_verdict_names_the_cause_also_where_only_a_related_component_is_still_blamed() -> None:
    both = joined(incident("skeletonhunter", NIC), says("c4d", RANK))
    assert both is not None
    end = max(one.window_end for one in both.opinions.values()) + timedelta(minutes=5)
    withdrawn = after(c.ClearFinding("r2", "skeletonhunter", "skeletonhunter", rfc3339(end)), state=both)
    assert (withdrawn.component, withdrawn.title) == (NIC, f"{NIC} is slow")
    assert withdrawn.verdict == (
        f"{NIC} is blamed through a related component: {RANK} is slow, 93 % likely at fault."
    )
    assert after(c.JoinFinding(says("c4d", RANK)), state=withdrawn).verdict == withdrawn.verdict


def test_an_analyzer_that_names_both_tells_two_faults_apart() -> None:
    assert joined(incident("c4d", NIC), says("c4d", RANK)) is None
    assert joined(incident("straggler", NODE), says("c4d", RANK), beside=[NODE]) is None


def test_a_rank_is_no_part_of_what_two_ranks_of_a_node_share() -> None:
    state = joined(incident("straggler", NODE), says("c4d", RANK), beside=[OTHER_RANK])
    assert state is not None
    assert state.component == NODE


def test_a_node_with_incidents_of_two_parts_is_the_cause() -> None:
    two = [incident("c4d", RANK, 1), incident("c4d", OTHER_RANK, 2)]
    new = says("straggler", NODE)
    found = join_of(new, candidates(new, two, []), [], LINKS)
    assert found is not None
    assert (found.incident.number, found.relation and found.relation.deeper) == (1, True)


def test_a_fault_of_another_card_of_the_node_is_another_incident() -> None:
    state = joined(incident("straggler", NODE), says("skeletonhunter", NIC))
    assert state is not None
    assert joined(state, says("deepview", OTHER_NIC)) is None


def test_a_rank_is_not_tied_to_a_rack() -> None:
    assert joined(incident("deepview", RACK), says("c4d", RANK)) is None


def test_a_dependency_of_a_dependency_is_tied() -> None:
    state = joined(incident("c4d", RANK), says("voting", LINK))
    assert state is not None
    assert state.component == LINK


def test_failures_that_began_hours_apart_are_two() -> None:
    early = finding(NIC, analyzer="skeletonhunter", end=NOON - timedelta(hours=3))
    assert joined(after(blamed(early)), says("c4d", RANK)) is None


def test_a_forecast_and_a_resolved_incident_take_no_part() -> None:
    forecast = says("selector", NODE, forecast=True)
    assert joined(after(blamed(forecast)), says("c4d", RANK)) is None
    assert joined(incident("c4d", RANK), forecast) is None
    assert joined(after(c.Resolve(NIC, "", {}), state=incident("c4d", NIC)), says("straggler", NODE)) is None


def test_another_region_is_another_fault() -> None:
    assert joined(incident("c4d", RANK), finding(NODE, analyzer="straggler", region="east")) is None


def test_an_analyzer_that_named_the_rank_of_the_card_was_right() -> None:
    state = joined(incident("skeletonhunter", NIC), says("c4d", RANK))
    assert state is not None
    over = after(c.Resolve(NIC, "", {}), state=state)
    assert {one.analyzer: one.outcome for one in analyzer_outcomes(over)} == {
        "c4d": "right",
        "skeletonhunter": "right",
    }
