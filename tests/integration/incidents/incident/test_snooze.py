"""Snoozed incidents: what wakes them, and that nothing is lost while they sleep."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import uuid4

import pytest
from django.utils import timezone

from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.values import rfc3339
from incidents.incident.models import IncidentRow
from incidents.timers import OF_INCIDENTS
from tests.integration.incidents.alerts.test_correlate import ALICE, alert, send, texts, ticket
from tests.integration.incidents.incident.test_api import Call, caller, opened

pytestmark = pytest.mark.usefixtures("log_database")


def soon() -> datetime:
    return timezone.now() + timedelta(hours=1)


def snoozed_alert(until: datetime | None) -> None:
    send(alert("a"))
    commands.snooze(ticket().incident.id, until, "", ALICE)


def swept(now: datetime) -> int:
    return OF_INCIDENTS["due snoozes"](now)


def test_the_sweep_wakes_what_is_due_once_and_nothing_else() -> None:
    until = soon()
    snoozed_alert(until)
    assert [swept(until - timedelta(seconds=1)), swept(until), swept(until)] == [0, 1, 0]
    assert ticket().incident.state == "open"
    assert texts()[-1].startswith("snooze ended: end of the snooze at ")


def test_a_ticket_that_cannot_be_woken_keeps_no_other_asleep_and_is_told_of() -> None:
    until = soon()
    for title in ("one", "two", "three"):
        commands.snooze(commands.open_incident(Report(title), ALICE).incident.id, until, "", ALICE)
    without_a_stream = IncidentRow.objects.get(number=2)
    without_a_stream.delete()
    without_a_stream.pk = uuid4()
    without_a_stream.save(force_insert=True)
    with pytest.raises(ValueError, match="first event"):
        swept(until)
    assert [ticket(number).incident.state for number in (1, 3)] == ["open", "open"]
    assert swept(until) == 0  # it is passed over for a while


def test_alerts_go_on_joining_a_snoozed_ticket_and_are_there_when_it_wakes() -> None:
    until = soon()
    snoozed_alert(until)
    send(alert("b"), alert("c"))
    swept(until)
    one = ticket().incident
    assert (one.state, one.alerts, one.firing, len(queries.members("1")[0])) == ("open", 3, 3, 3)


def test_a_new_alert_wakes_what_sleeps_until_it_changes_and_a_repeat_does_not() -> None:
    snoozed_alert(None)
    send(alert("a"))
    assert ticket().incident.state == "snoozed"
    send(alert("b"))
    assert ticket().incident.state == "open"


def test_an_alert_that_gets_worse_wakes_its_ticket() -> None:
    snoozed_alert(soon())
    send(alert("a", severity="critical"))
    assert (ticket().incident.state, ticket().incident.severity) == ("open", "critical")


def test_a_snoozed_ticket_whose_alerts_are_over_is_resolved() -> None:
    snoozed_alert(soon())
    send(alert("a", "resolved"))
    assert ticket().incident.state == "resolved"


@pytest.fixture
def api() -> Call:
    return caller("incidents:read", "incidents:write")


def test_a_ticket_is_snoozed_and_woken_over_the_api(api: Call) -> None:
    id_, until = opened(api), rfc3339(soon())
    asleep = api(
        "POST", f"incidents/{id_}/snooze", {"until": until, "reason": "the part is on its way"}
    ).json()
    assert (asleep["state"], asleep["snoozed_until"]) == ("snoozed", until)
    assert api("POST", f"incidents/{id_}/undo", {"what": "snooze"}).json()["state"] == "open"


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"until": "2020-01-01T00:00:00Z"}, "until"),
        ({"until": "soon"}, "until"),
        ({"until": 7}, "until"),
        ({"until": "2199-01-01T00:00:00Z"}, "until"),
    ],
)
def test_a_time_at_which_nothing_can_wake_is_refused_by_field(api: Call, body: object, field: str) -> None:
    response = api("POST", f"incidents/{opened(api)}/snooze", body)
    assert (response.status_code, list(response.json()["errors"])) == (400, [field])
