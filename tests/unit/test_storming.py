"""Whether tickets come faster than people read."""

from __future__ import annotations

from incidents.domain.storming import MANY, Gathering, storm_of


def test_a_ticket_that_collects_a_storm_is_a_storm() -> None:
    storm = storm_of([Gathering(7, "DiskSlow and others", 312, 300), Gathering(9, "LinkDown", 8, 1)], 0)
    assert storm is not None
    assert (storm.alerts, storm.firing) == (320, 301)


def test_many_tickets_at_once_are_a_storm_without_one_that_collects_them() -> None:
    storm = storm_of([], MANY)
    assert storm is not None
    assert storm.arrivals == MANY


def test_a_few_tickets_at_once_are_none() -> None:
    assert storm_of([], MANY - 1) is None
