"""Two people act on one incident: the first wins, the other is told who did what and when."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from incidents import commands, queries
from incidents.commands import ConcurrentChangeError, ExpectedContext, Report
from ingest.queries import Context
from tests.integration.incidents.incident.test_api import Call, caller
from tests.integration.incidents.incident.test_findings import S7, run, suspect

ALICE, BOB = Context("user:alice"), Context("user:bob")
committed = pytest.mark.usefixtures("log_database")


@pytest.fixture
def api() -> Call:
    return caller("incidents:read", "incidents:write")


def etag(api: Call) -> tuple[str, str]:
    response = api("POST", "incidents", {"title": "Disks fail"})
    return response.json()["id"], response["ETag"]


@pytest.mark.django_db
def test_a_command_on_a_ticket_that_somebody_changed_is_told_who_what_and_when(api: Call) -> None:
    id_, seen = etag(api)
    commands.hand_over(id_, "network", "theirs", BOB)
    response = api("POST", f"incidents/{id_}/resolve", {"confirmed_cause": "none"}, **{"If-Match": seen})
    assert response.status_code == 409
    (one,) = response.json()["meanwhile"]
    assert (one["type"], one["actor"]) == ("incident.reassigned", "user:bob")
    assert "bob handed the incident over from on-call to network: theirs" in response.json()["detail"]
    assert queries.get(id_).incident.state == "open"


@pytest.mark.django_db
def test_asking_again_from_what_is_there_now_goes_through(api: Call) -> None:
    id_, _ = etag(api)
    commands.hand_over(id_, "network", "theirs", BOB)
    now = api("GET", f"incidents/{id_}")["ETag"]
    response = api("POST", f"incidents/{id_}/resolve", {"confirmed_cause": "none"}, **{"If-Match": now})
    assert response.status_code == 200


@pytest.mark.django_db
@pytest.mark.parametrize("given", [None, "*"])
def test_who_does_not_say_what_they_saw_is_not_held_up(api: Call, given: str | None) -> None:
    id_, _ = etag(api)
    User.objects.create(username="bob")
    commands.assign(id_, "bob", BOB)
    headers = {} if given is None else {"If-Match": given}
    assert api("POST", f"incidents/{id_}/acknowledge", {}, **headers).status_code == 200


@pytest.mark.django_db
def test_an_etag_that_is_none_is_refused(api: Call) -> None:
    id_, _ = etag(api)
    response = api("POST", f"incidents/{id_}/acknowledge", {}, **{"If-Match": '"nonsense"'})
    assert (response.status_code, list(response.json()["errors"])) == (400, ["If-Match"])


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("verb", "body"),
    [
        ("comment", {"text": "still looking"}),
        ("set_title", {"title": "New"}),
        ("link", {"href": "https://x.example"}),
    ],
)
def test_what_concerns_another_side_of_the_ticket_goes_through(api: Call, verb: str, body: Any) -> None:
    id_, seen = etag(api)
    commands.acknowledge(id_, BOB)
    assert api("POST", f"incidents/{id_}/{verb}", body, **{"If-Match": seen}).status_code == 200


@pytest.mark.django_db
def test_what_is_so_already_is_no_conflict(api: Call) -> None:
    id_, seen = etag(api)
    commands.set_severity(id_, "critical", BOB)
    response = api("POST", f"incidents/{id_}/set_severity", {"severity": "critical"}, **{"If-Match": seen})
    assert (response.status_code, "Dossier-Receipt" in response) == (200, False)


@committed
def test_findings_and_comments_make_nothing_stale() -> None:
    run(0, suspect(S7, sure=True))
    view = queries.get("1")
    run(1, suspect(S7, sure=True))
    commands.comment(view.incident.id, "looking", BOB)
    asking = ExpectedContext("user:alice", seen=view.position)
    assert commands.acknowledge(view.incident.id, asking).incident.state == "acknowledged"


@committed
def test_of_eight_who_hand_a_ticket_over_at_once_one_wins_and_seven_are_told_by_whom() -> None:
    incident = commands.open_incident(Report("Disks fail"), ALICE).incident
    seen, barrier = queries.get(incident.id).position, threading.Barrier(8)

    def act(n: int) -> str:
        barrier.wait()
        try:
            team = "network" if n % 2 else "storage"
            commands.hand_over(incident.id, team, f"reason {n}", ExpectedContext(f"user:u{n}", seen=seen))
        except ConcurrentChangeError as overtaken:
            return overtaken.meanwhile[-1].actor
        finally:
            connections.close_all()
        return "won"

    with ThreadPoolExecutor(8) as pool:
        told = list(pool.map(act, range(8)))
    assert told.count("won") == 1
    assert set(told) == {"won", f"user:u{told.index('won')}"}
    assert queries.get(incident.id).incident.hops == 1


@committed
def test_the_console_shows_kindly_who_was_faster_and_keeps_what_was_typed() -> None:
    incident = commands.open_incident(Report("Disks fail"), ALICE).incident
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    seen = queries.get(incident.id).position
    commands.acknowledge(incident.id, BOB)
    form = {"team": "network", "reason": "the ToR drops", "seen": seen}
    response = alice.post(f"/incidents/{incident.number}/hand_over", form)
    body = response.content.decode()
    assert response.status_code == 409
    assert "Not done: the incident changed" in body
    assert "bob acknowledged the incident" in body
    assert "the ToR drops" in body
    again = {**form, "seen": queries.get(incident.id).position}
    assert alice.post(f"/incidents/{incident.number}/hand_over", again).status_code == 302
