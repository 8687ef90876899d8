"""A person resolves the incident of a storm: its alerts are settled in parts, while senders and people go on."""

from __future__ import annotations

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.test import Client
from django.utils import timezone

from incidents import commands, queries
from incidents.alerts import resolve
from incidents.follower import follower
from ingest.queries import Context, open_alerts, read_stream
from tests.following import follow_to_the_end
from tests.integration.incidents.alerts.test_correlate import alert, resolve_by_hand, send, ticket, tickets


@pytest.fixture(autouse=True)
def storm(
    log_database: str,  # noqa: ARG001  what follows the log has to commit
    monkeypatch: pytest.MonkeyPatch,
) -> list[str]:
    """An incident with five alerts that was resolved; two of them are settled, and two more each time."""
    monkeypatch.setattr(resolve, "AT_ONCE", 2)
    send(*(alert(f"d{n}") for n in range(5)))
    ids = [one.id for one in queries.members("1")[0]]
    resolve_by_hand()
    return ids


def sweep() -> int:
    did = resolve.sweep(timezone.now())
    follow_to_the_end(follower())
    return did


def firing() -> list[str]:
    """Keys."""
    return [one.alert.key for one in open_alerts()]


def test_all_are_settled_in_parts_and_each_once_also_when_a_part_is_killed(storm: list[str]) -> None:
    assert (queries.alerts_pending_resolution("1"), len(firing())) == (3, 3)
    with transaction.atomic():
        resolve.sweep(timezone.now())
        transaction.set_rollback(True)
    assert (queries.alerts_pending_resolution("1"), len(firing())) == (3, 3)
    assert [sweep() for _ in range(3)] == [2, 1, 0]
    assert [[event.body["change"] for event in read_stream(f"alert/{id_}")] for id_ in storm] == [
        ["fired", "settled"]
    ] * 5
    assert [view.incident.state for view in tickets()] == ["resolved"]


def test_the_page_says_how_many_are_left_and_the_interface_too(client: Client) -> None:
    client.force_login(User.objects.create(username="alice", is_staff=True, is_superuser=True))
    assert "3 alerts of this incident are still being resolved" in client.get("/incidents/1").content.decode()
    assert client.get("/api/v1/incidents/1/alerts").json()["pending_resolutions"] == 3


def test_what_still_fires_when_the_ticket_is_reopened_goes_on_in_it() -> None:
    commands.reopen(ticket().incident.id, "", Context("user:alice"))
    assert [sweep() for _ in range(3)] == [2, 1, 0]
    assert (ticket().incident.state, len(firing())) == ("open", 3)


def test_what_is_sent_meanwhile_is_settled_unless_it_says_something_new() -> None:
    again, worse, _ = firing()
    send(alert(again))
    send(alert(worse, severity="critical"))
    assert list(iter(sweep, 0)) == [2, 1]
    assert firing() == [worse]
    assert [view.incident.state for view in tickets()] == ["open", "resolved"]


def test_what_begins_anew_a_moment_after_its_ticket_was_resolved_opens_another() -> None:
    fires = {one.alert.key for one in open_alerts()}
    settled = next(f"d{n}" for n in range(5) if f"d{n}" not in fires)
    send(alert(settled))
    assert len(tickets()) == 1  # its sender may not know yet
    send(alert(settled, "resolved"))
    send(alert(settled))
    assert [view.incident.state for view in tickets()] == ["open", "resolved"]
    assert list(iter(sweep, 0)) == [2, 1]
    assert firing() == [settled]


def test_a_reopened_ticket_knows_which_of_its_alerts_fire_and_waits_for_all_of_them() -> None:
    commands.reopen(ticket().incident.id, "", Context("user:alice"))
    follow_to_the_end(follower())
    assert (ticket().incident.alerts, ticket().incident.firing) == (5, 3)
    first, *others = firing()
    send(alert(first, "resolved"))
    assert (ticket().incident.state, ticket().incident.firing) == ("open", 2)
    send(*(alert(one, "resolved") for one in others))
    assert ticket().incident.state == "resolved"
