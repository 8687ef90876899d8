"""Dependents of a component, gathered and drawn."""

from __future__ import annotations

from frontend.views.components.impact_drawing import BOX, drawn
from incidents.domain.components.impact import AffectedComponent, AffectedService
from incidents.domain.components.impact_graph import MOST_GROUPS, BlastGraph, Trouble, blast_graph

HOSTS = [AffectedComponent(f"host/h{place}", 1, "is contained in rack/r1") for place in range(4_112)]


def graph(
    *far: AffectedComponent, troubles: dict[str, Trouble] | None = None, services: int = 0
) -> BlastGraph:
    touched = [
        AffectedService(f"s{place}", f"Service {place}", "storage", 1, "has it") for place in range(services)
    ]
    return blast_graph("rack/r1", ["row/1"], ["power/p1"], far, touched, troubles or {}, listed=True)


def test_what_fails_is_gathered_by_kind() -> None:
    (group,) = graph(*HOSTS).beneath
    assert (group.called, group.relation) == ("4,112 hosts", "contents")


def test_an_only_one_of_its_kind_is_named() -> None:
    assert graph(HOSTS[0]).beneath[0].called == "host/h0"


def test_a_group_names_where_it_hurts_most_and_adds_it_up() -> None:
    troubles = {"host/h7": Trouble(0, 5), "host/h9": Trouble(1, 0)}
    (group,) = graph(*HOSTS, troubles=troubles).beneath
    assert [name for name, _ in group.named] == ["host/h9", "host/h7"]
    assert group.trouble == Trouble(1, 5)


def test_distances_and_relations_are_groups_of_their_own() -> None:
    found = graph(
        HOSTS[0],
        AffectedComponent("host/x", 1, "depends on rack/r1"),
        AffectedComponent("host/y", 2, "is contained in z"),
    )
    assert [(one.hops, one.relation) for one in found.beneath] == [
        (1, "contents"),
        (1, "dependents"),
        (2, "contents"),
    ]


def test_what_does_not_fit_is_counted() -> None:
    far = [
        AffectedComponent(f"kind{place}/a", 1, "is contained in rack/r1") for place in range(MOST_GROUPS + 3)
    ]
    found = graph(*far, services=9)
    assert (len(found.beneath), found.more_beneath, found.more_services) == (MOST_GROUPS, 3, 3)


def test_what_it_rests_on_says_how() -> None:
    assert [(one.name, one.relation) for one in graph().above] == [
        ("row/1", "contains this component"),
        ("power/p1", "dependency"),
    ]


def test_a_component_that_the_topology_does_not_name_is_not_known() -> None:
    assert not blast_graph("rack/r1", [], [], [], [], {}, listed=True).known


def test_no_two_boxes_of_a_drawing_overlap() -> None:
    far = [AffectedComponent(f"kind{place}/a", 1, "is contained in rack/r1") for place in range(30)]
    boxes = drawn(graph(*far, services=9)).boxes
    for place, one in enumerate(boxes):
        for other in boxes[place + 1 :]:
            apart = (
                abs(one.y - other.y) >= BOX or one.x + one.width <= other.x or other.x + other.width <= one.x
            )
            assert apart, (one, other)


def test_an_empty_column_takes_no_place() -> None:
    alone = drawn(blast_graph("rack/r1", [], [], [], [], {"rack/r1": Trouble(1)}, listed=True))
    assert [(box.x, box.under) for box in alone.boxes] == [(0, "1 incident")]


def test_a_long_name_is_cut_in_its_middle_and_told_whole_on_hover() -> None:
    box = drawn(
        graph(AffectedComponent("host/a-very-long-name-of-a-host-in-dc1", 1, "is contained in rack/r1"))
    ).boxes[3]
    assert (len(box.title), "…" in box.title) == (24, True)
    assert "host/a-very-long-name-of-a-host-in-dc1" in box.full


def test_plurals_are_english() -> None:
    far = [
        AffectedComponent(f"{kind}/{n}", 1, "depends on it")
        for kind in ("switch", "proxy", "vm")
        for n in "ab"
    ]
    assert {one.called for one in graph(*far).beneath} == {"2 switches", "2 proxies", "2 vms"}
