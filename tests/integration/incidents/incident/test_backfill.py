"""Incidents of the past, recorded with their own times."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from deploy.demo.last_week import draw, judged
from incidents import queries
from incidents.commands import Report
from incidents.domain.incident import commands as c
from incidents.domain.values import InvalidValueError
from incidents.incident.backfill import PastIncident, record_past
from incidents.scorecards.queries import scorecard
from ingest.queries import Context

OPENED = datetime(2026, 3, 2, 10, tzinfo=UTC)
ALICE = Context("user:alice")
pytestmark = pytest.mark.usefixtures("log_database")


def past(*minutes: int) -> PastIncident:
    commands = (c.Acknowledge(), c.HandOver("compute", "theirs"), c.Resolve("tor/t1", ""))
    times = (OPENED + timedelta(minutes=minute) for minute in minutes)
    return PastIncident(
        Report("Packets are lost", "tor/t1"), OPENED, tuple(zip(times, commands, strict=False))
    )


def test_a_past_ticket_has_its_own_times() -> None:
    state = record_past(past(3, 10, 60), ALICE)
    found = queries.get(state.id).incident
    assert found.opened_at == OPENED
    assert (found.resolved_at, found.hops) == (OPENED + timedelta(hours=1), 1)


def test_the_log_still_says_when_it_was_recorded() -> None:
    before = datetime.now(UTC)
    state = record_past(past(3, 10, 60), ALICE)
    assert all(event.recorded_at >= before for event in queries.incident_events(state.id))


def test_steps_out_of_order_record_nothing() -> None:
    with pytest.raises(InvalidValueError, match="in order of time"):
        record_past(past(3, 1), ALICE)
    assert queries.list_incidents().items == []


def test_what_an_analyzer_found_in_the_past_is_on_its_card_and_missed_causes_too() -> None:
    watched = [trouble for trouble in draw(OPENED, 7) if trouble.rows][-12:]
    for trouble in watched:
        record_past(judged(trouble), ALICE)
    card = scorecard("deepview")
    assert card.right + card.wrong + card.missed == len(watched)
    assert min(card.alone, card.matched, card.first, card.missed) > 0
    assert queries.counts()["resolved"] == len(watched)
