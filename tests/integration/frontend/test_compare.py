"""Two times of an incident, of the grid and of the configuration, by page and by API."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta
from urllib.parse import parse_qs, urlencode

import pytest
from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from incidents import commands, queries
from incidents.audit.models import Change
from incidents.commands import Report
from incidents.domain.values import rfc3339
from ingest.queries import Context

pytestmark = pytest.mark.usefixtures("log_database")
BOB = Context("user:bob")
PAGES = ("/incidents/{n}/compare", "/grid/compare", "/settings/audit/compare")
APIS = ("/api/v1/incidents/{n}/compare", "/api/v1/grid/compare", "/api/v1/configuration/compare")


@pytest.fixture
def alice(log_database: str) -> Client:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="alice", is_staff=True))
    return client


def opened() -> tuple[int, str]:
    made = commands.open_incident(Report("Rack 12 loses packets", "rack/r12", severity="error"), BOB).incident
    return made.number, made.id


def asked(start: datetime, end: datetime | None = None) -> str:
    return urlencode({"from": rfc3339(start), **({"to": rfc3339(end)} if end else {})})


def test_an_incident_is_compared_field_by_field_with_the_events_between(alice: Client) -> None:
    number, id_ = opened()
    first = timezone.now()
    commands.acknowledge(id_, BOB)
    commands.set_severity(id_, "critical", BOB)
    answer = alice.get(f"/api/v1/incidents/{number}/compare?{asked(first)}").json()
    fields = {one["field"]: (one["before"], one["after"]) for one in answer["fields"]}
    assert fields == {
        "state": ("open", "acknowledged"),
        "severity": ("error", "critical"),
        "owner": (None, "bob"),
    }
    assert [one["type"] for one in answer["events"]] == ["incident.severity_set", "incident.acknowledged"]
    assert answer["opened"] is False
    body = alice.get(f"/incidents/{number}/compare?{asked(first)}").content.decode()
    assert "<del>error</del>" in body
    assert "<ins>critical</ins>" in body


def test_a_log_position_is_the_moment_after_its_event(alice: Client) -> None:
    number, id_ = opened()
    position = queries.get(str(number)).position
    commands.set_severity(id_, "critical", BOB)
    answer = alice.get(f"/api/v1/incidents/{number}/compare?from={position}").json()
    assert answer["opened"] is False
    assert answer["fields"] == [{"field": "severity", "before": "error", "after": "critical"}]


def test_two_times_between_which_nothing_happened_say_so(alice: Client) -> None:
    number, _ = opened()
    now = timezone.now()
    for path in PAGES[:1] + PAGES[2:]:
        body = alice.get(f"{path.format(n=number)}?{asked(now, timezone.now())}").content.decode()
        assert "Nothing changed." in body


def test_an_incident_opened_between_the_times_is_new_and_one_opened_later_is_refused(alice: Client) -> None:
    before = timezone.now() - timedelta(hours=1)
    number, _ = opened()
    answer = alice.get(f"/api/v1/incidents/{number}/compare?{asked(before)}").json()
    assert answer["opened"] is True
    assert {"field": "severity", "before": None, "after": "error"} in answer["fields"]
    refused = alice.get(f"/incidents/{number}/compare?{asked(before, before + timedelta(minutes=1))}")
    assert refused.status_code == 400
    assert f"when #{number} was opened" in refused.content.decode()


def test_the_configuration_is_compared_object_by_object(alice: Client) -> None:
    start = timezone.now()
    for position, (key, before, after) in enumerate(
        [
            ("kept", {"name": "A"}, {"name": "B"}),
            ("kept", {"name": "B"}, {"name": "C", "steps": [1]}),
            ("there and back", {"name": "A"}, {"name": "B"}),
            ("there and back", {"name": "B"}, {"name": "A"}),
            ("new", None, {"name": "N"}),
            ("gone", {"name": "G"}, None),
        ]
    ):
        Change.objects.create(
            position=f"{position:036x}", kind="team", key=key, actor="user:bob", at=timezone.now(),
            before=before, after=after,
        )  # fmt: skip
    answer = alice.get(f"/api/v1/configuration/compare?{asked(start)}").json()
    assert {one["key"]: one["what"] for one in answer["objects"]} == {
        "kept": "changed", "new": "created", "gone": "removed"
    }  # fmt: skip
    kept = next(one for one in answer["objects"] if one["key"] == "kept")
    assert (kept["changes"], kept["fields"][0]) == (2, {"field": "name", "before": "A", "after": "C"})
    assert answer["reverted"] == 1
    body = alice.get(f"/settings/audit/compare?{asked(start)}").content.decode()
    assert "1 object changed in between and is as before" in body


def test_many_objects_that_differ_are_folded_by_kind(alice: Client) -> None:
    start = timezone.now()
    for place in range(12):
        Change.objects.create(
            position=f"{place:036x}", kind="route" if place % 3 else "silence", key=f"k{place}", actor="user:bob",
            at=timezone.now(), before=None, after={"name": f"N{place}"},
        )  # fmt: skip
    body = alice.get(f"/settings/audit/compare?{asked(start)}").content.decode()
    assert "12 objects, by kind." in body
    assert (body.count('<details class="card flush of-kind">'), body.count('<details class="older">')) == (
        2,
        12,
    )
    assert [f"N{place}" in body for place in range(12)] == [True] * 12


def test_the_grid_without_telemetry_says_that_there_is_none(alice: Client) -> None:
    start = timezone.now() - timedelta(hours=2)
    assert alice.get(f"/api/v1/grid/compare?{asked(start)}").json()["known"] is False
    assert "No telemetry to compare." in alice.get(f"/grid/compare?{asked(start)}").content.decode()


@pytest.mark.parametrize("paths", [PAGES, APIS], ids=["pages", "API"])
def test_times_that_make_no_sense_are_refused_in_one_line(alice: Client, paths: tuple[str, ...]) -> None:
    number, _ = opened()
    now = timezone.now()
    wrong: dict[str, Callable[[], str]] = {
        "must be an RFC 3339 time": lambda: "from=soon",
        "must be before": lambda: asked(now, now - timedelta(hours=1)),
        "must not be in the future": lambda: asked(now, now + timedelta(days=1)),
        "must be given": lambda: urlencode({"to": rfc3339(now)}),
    }
    for path in paths:
        for reason, query in wrong.items():
            response = alice.get(f"{path.format(n=number)}?{query()}")
            assert (response.status_code, reason in response.content.decode()) == (400, True), (path, reason)


def test_a_page_without_times_compares_the_usual_ones_at_once(alice: Client) -> None:
    number, id_ = opened()
    commands.set_severity(id_, "critical", BOB)
    hour_ago = timezone.now() - timedelta(hours=1)
    for path, start in zip(
        PAGES, (queries.get(str(number)).incident.opened_at, hour_ago, hour_ago), strict=True
    ):
        leads_to = alice.get(path.format(n=number)).headers["Location"]
        begin = datetime.fromisoformat(parse_qs(leads_to[1:])["from"][0])
        assert abs(begin - start) < timedelta(minutes=1)
        assert '<p class="span">' in alice.get(path.format(n=number) + leads_to).content.decode(), path
    assert parse_qs(alice.get("/grid/compare?window=60").headers["Location"][1:])["window"] == ["60"]
    page = alice.get(f"/incidents/{number}/compare", follow=True).content.decode()
    assert "<ins>critical</ins>" in page


def test_the_form_of_a_page_leads_to_an_address(alice: Client) -> None:
    number, _ = opened()
    for path in PAGES:
        address = path.format(n=number)
        form = {"from_time": "2026-11-21T10:00", "to_time": "2026-11-21T11:00"}
        assert alice.get(address, form).headers["Location"] == (
            "?from=2026-11-21T10%3A00%3A00Z&to=2026-11-21T11%3A00%3A00Z"
        )
        assert alice.get(address, {"from_time": "soon"}).status_code == 400


def test_only_staff_compare_the_configuration(alice: Client) -> None:
    get_user_model().objects.filter(username="alice").update(is_staff=False)
    start = timezone.now() - timedelta(hours=1)
    assert alice.get(f"/settings/audit/compare?{asked(start)}").status_code == 403
    assert alice.get(f"/api/v1/configuration/compare?{asked(start)}").status_code == 403


def test_a_long_comparison_of_an_incident_folds_all_but_the_newest_events_and_first_fields(
    alice: Client,
) -> None:
    before = timezone.now() - timedelta(minutes=1)
    number, id_ = opened()
    commands.acknowledge(id_, BOB)
    commands.hand_over(id_, "storage", "the disks time out", BOB)
    for place in range(11):
        commands.comment(id_, f"note {place}", BOB)
    body = alice.get(f"/incidents/{number}/compare?{asked(before)}").content.decode()
    shown, _, folded = body.partition(" earlier events</summary>")
    assert shown.endswith("<summary>6")
    assert "note 10" in shown
    assert "note 2<" not in shown
    assert "note 2<" not in folded.partition("</details>")[2]
    assert "note 0" in folded
    assert " more field" in shown
