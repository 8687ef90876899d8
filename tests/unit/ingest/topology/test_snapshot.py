from __future__ import annotations

from datetime import UTC, datetime

from ingest.topology.read import Component
from ingest.topology.snapshot import Snapshot, snapshot_of

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)


def one(name: str, *parents: str, needs: tuple[str, ...] = ()) -> Component:
    return Component(name, parents, needs, {}, NOON)


def world() -> Snapshot:
    tors = [one(f"tor/c1-t{n}", "cluster/c1", needs=("t2/d1",)) for n in (10, 2, 1)]
    return snapshot_of("north", [one("cluster/c1", "dc/d1"), *tors, one("host/h1", "tor/c1-t2")])


def test_what_is_only_mentioned_is_known_too() -> None:
    assert (world().knows("dc/d1"), world().knows("t2/d1"), world().knows("dc/d2")) == (True, True, False)


def test_roots_are_what_nothing_contains() -> None:
    assert world().roots == ("dc/d1", "t2/d1")


def test_what_a_component_contains_is_in_the_order_of_people() -> None:
    assert world().contains["cluster/c1"] == ("tor/c1-t1", "tor/c1-t2", "tor/c1-t10")


def test_what_a_component_contains_is_counted_by_kind() -> None:
    assert world().beneath("cluster/c1") == [("tor", 3)]


def test_the_way_up_begins_outside() -> None:
    assert world().above("host/h1") == ("dc/d1", "cluster/c1", "tor/c1-t2")


def test_a_circle_of_containment_ends() -> None:
    circle = snapshot_of("north", [one("a/1", "b/1"), one("b/1", "a/1")])
    assert circle.above("a/1") == ("b/1",)


def test_names_that_begin_with_what_is_searched_come_first() -> None:
    found = snapshot_of("north", [one("rack/t1"), one("t1/x"), one("tor/at1"), one("tor/b")]).found("T1")
    assert found == ["t1/x", "rack/t1", "tor/at1"]


def test_a_search_may_be_for_one_kind() -> None:
    assert world().found("c1", "cluster") == ["cluster/c1"]
