"""Kinds of lines of the timeline."""

from __future__ import annotations

import pytest

from incidents.domain.incident.evolve import EVENT_TYPES
from incidents.domain.incident.timeline import KINDS, kind_of


@pytest.mark.parametrize("type_", EVENT_TYPES)
def test_every_event_is_of_a_kind_whoever_did_it(type_: str) -> None:
    assert {kind_of(type_, actor) for actor in ("user:alice", "key:ci", "system:incidents")} <= set(KINDS)


def test_what_people_do_is_theirs() -> None:
    assert kind_of("incident.commented", "user:alice") == "people"


def test_a_resolution_by_itself_is_told_by_alerts() -> None:
    assert kind_of("incident.resolved", "system:incidents") == "alerts"
    assert kind_of("incident.resolved", "user:alice") == "people"


def test_a_hand_over_is_routing_also_by_a_person() -> None:
    assert kind_of("incident.reassigned", "user:alice") == "routing"


def test_calls_are_notifications() -> None:
    assert kind_of("incident.escalated", "system:escalation") == "notifications"
