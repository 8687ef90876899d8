"""Places of the open incidents in a tree of components."""

from incidents.domain.components.incidents_below import incidents_below

PARENTS = {
    "host/h1": ("tor/t1",),
    "host/h2": ("tor/t1",),
    "tor/t1": ("dc/d1", "row/r1"),
    "loop/a": ("loop/b",),
    "loop/b": ("loop/a",),
}


def parents(name: str) -> tuple[str, ...]:
    return PARENTS.get(name, ())


def test_a_ticket_counts_for_all_that_contains_its_component() -> None:
    found = incidents_below([["host/h1"]], parents)
    assert found == {"host/h1": 1, "tor/t1": 1, "dc/d1": 1, "row/r1": 1}


def test_a_ticket_about_several_counts_once_for_what_contains_them() -> None:
    assert incidents_below([["host/h1", "host/h2"]], parents)["tor/t1"] == 1


def test_two_tickets_count_twice() -> None:
    assert incidents_below([["host/h1"], ["host/h2"]], parents)["dc/d1"] == 2


def test_what_contains_itself_ends_the_way_up() -> None:
    assert incidents_below([["loop/a"]], parents) == {"loop/a": 1, "loop/b": 1}


def test_a_component_that_the_topology_does_not_know_stands_for_itself() -> None:
    assert incidents_below([["vm/v1"]], parents) == {"vm/v1": 1}
