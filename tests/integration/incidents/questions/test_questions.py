"""Questions over the API: probes on ping lists, answers by rows and by people, and how the cause narrows."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from analyzers.commands import RunRequest, request_run
from incidents import follower, queries
from incidents.incident.rebuild import rebuild_incidents
from incidents.questions.sweep import answer_requested
from ingest.api import keys
from ingest.queries import now_utc
from tests.following import follow_to_the_end
from tests.integration.analyzers.runs.cases import Door, work

pytestmark = pytest.mark.usefixtures("log_database")

LINK, LEAF, SPINE, CABLE = "link/leaf1~spine1", "switch/leaf1", "switch/spine1", "link/h1~leaf1"
MINUTE = timedelta(minutes=1)


def hops(src: int, dst: int, plane: int = 1) -> list[str]:
    """The path through a fabric of two hosts a leaf."""
    below, above = (src + 1) // 2, (dst + 1) // 2
    passed = {
        f"link/h{src}~leaf{below}",
        f"link/h{dst}~leaf{above}",
        f"switch/leaf{below}",
        f"switch/leaf{above}",
    }
    if below != above:
        passed |= {f"switch/spine{plane}", f"link/leaf{below}~spine{plane}", f"link/leaf{above}~spine{plane}"}
    return sorted(passed)


def row(at: datetime, src: int, dst: int, lost: int, plane: int = 1) -> dict[str, Any]:
    ends = {"src": f"host/h{src}", "dst": f"host/h{dst}"}
    return {"time": at.isoformat(), **ends, "sent": 100, "lost": lost, "hops": hops(src, dst, plane)}


class Api:
    def __init__(self) -> None:
        key = keys.create("agent", ["incidents:read", "incidents:write", "telemetry"])
        self.client = Client(headers={"Authorization": f"Bearer {key}"})

    def get(self, path: str) -> Any:
        answer = self.client.get(f"/api/v1/{path}")
        assert answer.status_code == 200, answer.content
        return answer.json()

    def post(self, path: str, **body: Any) -> Any:
        return self.client.post(f"/api/v1/{path}", body, content_type="application/json")


def opened(now: datetime, door: Door) -> int:
    """Agents of one host probe one plane: what their paths share cannot be told apart. Others probed an hour ago."""
    hour_ago, late = now - 60 * MINUTE, now - 3 * MINUTE
    others = [(1, 2, 1), (1, 3, 2), (2, 3, 1)]
    door.post([row(hour_ago, src, dst, 0, plane) for src, dst, plane in others], kind="probe")
    failing = [row(late + n * MINUTE / 4, 1, dst, 30) for n in range(4) for dst in range(3, 9)]
    whole = [row(late + n * MINUTE / 4, src, src + 1, 0) for n in range(4) for src in (3, 5, 7)]
    door.post(failing + whole, kind="probe")
    request_run(RunRequest("voting", start=late - MINUTE, end=now), "alice", now)
    (run,) = work()
    assert run.status == "named"
    follow_to_the_end(follower.follower())
    (found,) = queries.list_incidents().items
    return found.incident.number


def test_probes_that_agents_send_narrow_the_cause_and_the_page_says_how() -> None:
    now = now_utc()
    door = Door()
    number, api = opened(now, door), Api()
    first = api.get(f"incidents/{number}/questions")
    named = {one["component"]: one["probability"] for one in first["suspects"]}
    assert {LINK, LEAF, SPINE, CABLE, "none"} == named.keys()
    best = first["questions"][0]
    assert (best["kind"], best["bits"] > 0.3) == ("probe", True)
    assert api.get("pinglists")["requested"] == []

    asked = api.post(f"incidents/{number}/questions/{best['id']}/request")
    assert (asked.status_code, "Dossier-Receipt" in asked.headers) == (200, True)
    (wanted,) = api.get("pinglists")["requested"]
    assert (wanted["source"], wanted["destination"], wanted["hops"]) == (
        best["src"],
        best["dst"],
        best["hops"],
    )
    assert api.get("pinglists?source=host/h99")["requested"] == []
    assert answer_requested(now_utc()) == 0

    at = now_utc()
    lost = 30 if LINK in wanted["hops"] else 0
    ends = {"src": wanted["source"], "dst": wanted["destination"], "hops": wanted["hops"]}
    door.post([{"time": at.isoformat(), **ends, "sent": wanted["packets"], "lost": lost}], kind="probe")
    later = at + MINUTE
    assert answer_requested(later) == 1
    assert (answer_requested(later), api.get("pinglists")["requested"]) == (0, [])
    second = api.get(f"incidents/{number}/questions")
    (answer,) = second["answers"]
    assert (answer["by"], answer["lost"], answer["sent"]) == ("telemetry", lost, wanted["packets"])
    assert second["bits"] < first["bits"]
    assert best["id"] not in {one["id"] for one in second["questions"]}
    incident = queries.get(str(number)).incident
    left = {one for one in named if one != "none" and (one in wanted["hops"]) == bool(lost)}
    assert {incident.component, *incident.ambiguous_with} == left
    assert str(incident.component) in (incident.verdict or "")

    User.objects.create_user("alice", is_staff=True)
    page = Client()
    page.force_login(User.objects.get(username="alice"))
    shown = page.get(reverse("questions", args=[number])).content.decode()
    assert "data-answers" in shown
    assert "→" in shown
    assert (
        reverse("questions", args=[number]) in page.get(reverse("incident", args=[number])).content.decode()
    )
    assert rebuild_incidents([incident.id]) == []


def test_answers_of_people_are_recorded_once_and_unknown_ones_are_refused() -> None:
    number, api = opened(now_utc(), Door()), Api()
    found = api.get(f"incidents/{number}/questions")
    drain = next(one for one in found["questions"] if one["kind"] == "drain" and one["target"] == LINK)
    path = f"incidents/{number}/questions"
    refused = api.post(f"{path}/{drain['id']}/request")
    assert (refused.status_code, "a person has to answer" in refused.json()["detail"]) == (409, True)
    for body, status in (
        ({}, 400),
        ({"outcome": "maybe"}, 400),
        ({"outcome": "positive", "at": "soon"}, 400),
    ):
        assert api.post(f"{path}/{drain['id']}/answer", **body).status_code == status
    unknown = api.post(f"{path}/ffffffffffff/answer", outcome="positive")
    assert (unknown.status_code, "nothing was recorded" in unknown.json()["detail"]) == (404, True)
    assert api.get(path)["answers"] == []

    answered = api.post(
        f"{path}/{drain['id']}/answer", outcome="positive", note="drained at 10:00", by="dc-ops"
    )
    assert answered.status_code == 200
    again = api.post(f"{path}/{drain['id']}/answer", outcome="positive")
    assert (again.status_code, "Dossier-Receipt" in again.headers) == (200, False)
    other = api.post(f"{path}/{drain['id']}/answer", outcome="negative")
    assert [one["effect"] for one in other.json()["answers"]] == ["moved", "contradicts"]
    assert api.post(f"incidents/{number}/resolve", confirmed_cause=LINK).status_code == 200
    spine = next(one for one in found["questions"] if one["kind"] == "drain" and one["target"] == SPINE)
    late = api.post(f"{path}/{spine['id']}/answer", outcome="negative").json()
    assert (late["answers"][-1]["effect"], late["reason"]) == ("late", "The incident is resolved.")
    reader = Client(headers={"Authorization": f"Bearer {keys.create('reader', ['incidents:read'])}"})
    assert reader.post(f"/api/v1/{path}/{spine['id']}/answer", {"outcome": "negative"}).status_code == 403
