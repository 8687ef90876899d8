"""The demo's people against the real API, over HTTP: each signed in, with a pager, under the rules of their teams."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from io import StringIO
from ipaddress import ip_network
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

import pytest
from django.core.wsgi import get_wsgi_application
from django.db import connections
from pytest_django import Settings

from deploy.demo import responders, roster
from deploy.demo.network import CHANGED
from deploy.demo.pager import LOOPBACK, Pager
from deploy.demo.responders import Responders
from deploy.demo.screen import Screen
from deploy.demo.sender import PersonSender, RequestRejectedError, Sender
from deploy.demo.world import Demo
from incidents import commands
from incidents.commands import Report
from incidents.escalation.queries import called_but_unreachable
from ingest.api import keys
from ingest.queries import Context

pytestmark = [pytest.mark.usefixtures("log_database"), pytest.mark.simulated]
SYSTEM = Context("system:test")
PASSWORD = "correct horse battery staple"


class _Quiet(WSGIRequestHandler):
    def log_message(self, format: str, *args: Any) -> None: ...


@contextmanager
def served() -> Iterator[str]:
    """The address of the application, served by a thread."""
    server = make_server(LOOPBACK, 0, get_wsgi_application(), handler_class=_Quiet)

    def run() -> None:
        server.serve_forever(poll_interval=0.02)
        connections.close_all()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield f"http://{LOOPBACK}:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


class World:
    """The demo's people, set up, in a demo of which so many minutes were sent."""

    def __init__(self, address: str) -> None:
        self.demo = Demo(datetime.now(UTC) - timedelta(hours=4))
        self.minutes, self.out = 0, StringIO()
        self.address, self.stop = address, threading.Event()
        self.admin = Sender(address, keys.create("admin", ["admin"]), self.stop)
        self.alerts = Sender(address, keys.create("prometheus", ["alerts"]), self.stop)
        self.screen = Screen(self.out)
        self.pager = Pager(self.screen, 0)
        self.pager.start()
        self.set_up(moved=True)
        self.people = {name: PersonSender(address, name, PASSWORD, self.stop) for name in roster.PEOPLE}
        self.responders = Responders(self.people, self.alerts, self.screen, self.demo, lambda: self.minutes)

    def set_up(self, *, moved: bool) -> bool:
        return roster.set_up(self.admin, PASSWORD, self.pager.address, moved=moved)

    def open(self, component: str) -> str:
        report = Report("it fails", component=component)
        return f"/api/v1/incidents/{commands.open_incident(report, SYSTEM).incident.number}"

    def step(self, times: int = 1) -> None:
        for _ in range(times):
            self.responders.step()


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network(LOOPBACK)]
    with served() as address:
        made = World(address)
        yield made
        made.stop.set()
        made.pager.shutdown()
        made.pager.server_close()


def test_four_people_have_two_rotations_policies_and_pagers_that_answer(world: World) -> None:
    users = {one["username"]: one["teams"] for one in world.admin.get("/api/v1/users")["results"]}
    assert {name: users.get(name) for name in roster.PEOPLE} == roster.PEOPLE
    on_call = {one["schedule"]: one["people"] for one in world.admin.get("/api/v1/on_call")["results"]}
    assert on_call == {"network-on-call": [roster.NETWORK], "storage-on-call": [roster.STORAGE]}
    policies = world.admin.get("/api/v1/escalation_policies")["results"]
    assert {one["team"] for one in policies} == {"storage", "network", "compute", "services"}
    assert len(world.pager.received) == len(roster.PEOPLE), "a test message each"
    assert called_but_unreachable() == {}
    assert not world.set_up(moved=False), "a restart finds everything"
    world.set_up(moved=True)
    assert len(world.pager.received) == 2 * len(roster.PEOPLE), "another address is tested, too"


def test_an_override_puts_the_lead_on_call_once(world: World) -> None:
    for _ in range(2):
        roster.override(world.people[roster.STORAGE], datetime.now(UTC))
    (made,) = world.admin.get("/api/v1/schedules/storage-on-call/overrides")["results"]
    assert (made["person"], made["made_by"]) == (roster.STORAGE_LEAD, f"user:{roster.STORAGE}")
    (now,) = [o for o in world.admin.get("/api/v1/on_call")["results"] if o["schedule"] == "storage-on-call"]
    assert now["people"] == [roster.STORAGE_LEAD]


def test_people_acknowledge_snooze_resolve_and_review(world: World) -> None:
    demo = world.demo
    world.step()
    assert world.out.getvalue() == "", "no incident, nothing to do"
    lasting = world.open(demo.world.lasting[0].component)
    firmware = world.open(demo.month.culprits[0])
    reboot = world.open(demo.world.truth["stories"][0]["faults"][0]["component"])
    world.step(2)
    get = world.admin.get
    assert get(lasting)["acknowledged_by"] == roster.STORAGE_LEAD
    assert (get(firmware)["state"], get(firmware)["snoozed_by"]) == ("snoozed", roster.NETWORK)
    assert get(reboot)["state"] == "acknowledged"
    world.minutes = responders.REBOOT_IS_OVER
    world.step(2)
    assert get(reboot)["state"] == "resolved"
    review = get(f"{reboot}/review")
    assert review["published_at"]
    assert [one["owner"] for one in review["actions"]] == [roster.NETWORK, roster.NETWORK_LEAD]
    assert not any(prompt in review["text"] for prompt in responders.FINDINGS)
    assert all(finding in review["text"] for finding in responders.FINDINGS.values())


def test_an_incident_goes_from_storage_to_the_network_and_is_accepted(world: World) -> None:
    world.minutes = responders.HAND_OVER_AT
    path = world.open(responders.LAGGING)
    world.step(2)
    assert world.admin.get(path)["team"] == "storage", "the incident of the link is not there yet"
    world.open(world.demo.network.culprit)
    world.step(2)
    found = world.admin.get(path)
    assert (found["team"], found["hops"]) == ("network", 1)
    assert found["accepted_by"] == roster.NETWORK


def test_a_person_who_was_faster_is_left_in_peace(world: World) -> None:
    path = world.open(world.demo.month.culprits[0])
    world.people[roster.NETWORK].post(f"{path}/acknowledge", {})
    world.step(2)
    assert world.admin.get(path)["state"] == "acknowledged"
    assert "refused" not in world.out.getvalue()


def test_a_storm_is_hundreds_of_alerts_that_end(world: World) -> None:
    begins = int(responders.storm_begins(world.demo))
    world.minutes = begins + 10
    world.step()
    early = len(firing(world))
    world.minutes = world.demo.minutes
    world.step()
    late = len(firing(world))
    assert 50 < early < late
    assert late > 200
    world.minutes += responders.STORM_LASTS
    world.step()
    assert firing(world) == []


def firing(world: World) -> list[Any]:
    reader = Sender(world.address, world.admin.key, world.stop)
    query = "filter=alertname%3D~%22VM.*|Host.*%22"
    found: list[Any] = reader.get(f"/api/v2/alerts?{query}")
    return found


def test_a_changed_password_is_said(world: World) -> None:
    person = PersonSender(world.address, roster.NETWORK, "another one", world.stop)
    with pytest.raises(RequestRejectedError, match="network-engineer could not sign in"):
        person.get("/api/v1/incidents")


def test_the_drain_before_the_loss_is_reported_validated_and_beside_its_incident(world: World) -> None:
    path = world.open(world.demo.network.culprit)
    world.minutes = CHANGED
    world.step(3)
    (change,) = world.admin.get(f"{path}/changes")["results"]
    assert change["integration"] == "prometheus"
    assert (change["validation"]["verdict"], change["validation"]["classes_violated"]) == ("violated", 7)
    assert "specification violated by 7 of 56" in world.out.getvalue()
    world.step(2)
    assert len(world.admin.get("/api/v1/changes")["results"]) == 1
