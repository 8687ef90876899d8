"""Bodies without end, JSON without bottom, reports for strangers: what is refused before it costs anything."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from deploy.middleware import BodyLimit
from incidents.reports.models import ReportSchedule, Subscription
from ingest.queries import configured

pytestmark = pytest.mark.django_db


def client(name: str, *, is_staff: bool = False) -> Client:
    user = get_user_model().objects.create(username=name, email=f"{name}@example.com", is_staff=is_staff)
    found = Client()
    found.force_login(user)
    return found


@pytest.mark.parametrize("path", ["/accounts/login/", "/inbox/views", "/api/v2/silences", "/api/v1/runs"])
def test_a_stranger_has_no_form_or_file_read_that_is_too_large(path: str) -> None:
    class Unread(BytesIO):
        def read(self, *_: int | None) -> bytes:
            raise AssertionError("it was read")

    sent: Any = {"CONTENT_LENGTH": str(BodyLimit.MOST + 1), "wsgi.input": Unread()}
    answer = Client(enforce_csrf_checks=True).post(path, **sent)
    assert (answer.status_code, answer["Content-Type"]) == (413, "application/problem+json")


def test_endpoints_of_machines_have_their_own_limit() -> None:
    body = b" " * (BodyLimit.MOST + 1)
    assert Client().post("/api/v1/telemetry/metric", body, content_type="application/json").status_code == 401


@pytest.mark.parametrize("path", ["runs", "analysis_schedules", "report_schedules", "teams", "integrations"])
@pytest.mark.parametrize("body", ["[" * 100_000, '{"a": NaN}', '{"a": 1, "a": 2}'])
def test_json_without_bottom_is_refused_by_every_view(path: str, body: str) -> None:
    alice = client("alice", is_staff=True)
    assert alice.post(f"/api/v1/{path}", body, content_type="application/json").status_code == 400


def subscribe(who: Client, address: str, **more: str) -> int:
    return int(who.post("/reports/subscribe/weekly", {"address": address, **more}).status_code)


@pytest.fixture
def weekly() -> ReportSchedule:
    return ReportSchedule.objects.get_or_create(name="weekly")[0]


def test_people_subscribe_their_own_address_and_staff_any(weekly: ReportSchedule) -> None:
    bob, alice = client("bob"), client("alice", is_staff=True)
    assert subscribe(bob, "rival@elsewhere.example") == 403
    assert (subscribe(bob, "bob@example.com"), subscribe(alice, "team@example.com")) == (302, 302)
    assert subscribe(bob, "team@example.com", leave="1") == 403
    assert sorted(weekly.subscriptions.values_list("address", flat=True)) == [
        "bob@example.com",
        "team@example.com",
    ]


@pytest.mark.usefixtures("weekly")
def test_who_gets_a_report_is_recorded_however_it_was_asked_for() -> None:
    alice, path = client("alice", is_staff=True), "/api/v1/report_subscriptions"
    told = {"schedule": "weekly", "address": "team@example.com"}
    made = alice.post(path, told, content_type="application/json")
    assert made.status_code == 201, made.content
    subscribe(alice, "team@example.com", leave="1")
    changes = configured("report_subscription", "weekly/team@example.com")
    assert [(one.body["before"], one.body["after"]) for one in changes] == [(None, told), (told, None)]


@pytest.mark.usefixtures("weekly")
def test_an_address_with_a_nul_in_it_is_nobodys() -> None:
    assert subscribe(client("alice", is_staff=True), "a\0b", leave="1") == 302
    assert not Subscription.objects.exists()


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "/reports/x%00y"),
        ("get", "/api/v1/reports/x%00y"),
        ("delete", "/api/v1/integrations/x%00y"),
        ("post", "/api/v1/integrations/x%00y/rotate"),
        ("get", "/settings/routes?integration=a%00b&component=tor/t1"),
        ("post", "/settings/people/person/x%00y/off"),
        ("post", "/settings/people/team/storage"),
    ],
)
def test_a_nul_is_no_error_of_ours_on_any_page(method: str, path: str) -> None:
    alice = client("alice", is_staff=True)
    assert getattr(alice, method)(path, {"user": "a\0b"} if method == "post" else None).status_code in (
        400,
        404,
    )
