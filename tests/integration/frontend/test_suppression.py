"""The pages of maintenance windows and inhibition rules: made, listed with what they hold, removed; for staff."""

from __future__ import annotations

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents.suppression.models import InhibitionRule, MaintenanceWindow
from ingest.queries import configured
from tests.integration.incidents.alerts.test_correlate import alert, send

pytestmark = pytest.mark.usefixtures("log_database")
WORK = {"slug": "row-3", "components": "tor/r3-*", "span": "4 h", "reason": "new firmware", "mode": "hold"}
RULE = {
    "slug": "cluster-down",
    "source_matchers": 'alertname="ClusterDown"',
    "target_matchers": 'severity=~"warning|info"',
    "equal": "cluster, zone",
}


def signed_in(name: str = "alice") -> Client:
    client = Client()
    client.force_login(get_user_model().objects.create(username=name, is_staff=name == "alice"))
    return client


def test_empty_pages_say_what_to_do() -> None:
    alice = signed_in()
    assert "No maintenance windows" in alice.get("/settings/maintenance").content.decode()
    assert "No inhibition rules" in alice.get("/settings/inhibitions").content.decode()
    assert "/settings/maintenance" in alice.get("/settings").content.decode()


def test_planned_work_is_listed_with_what_it_holds_and_removed() -> None:
    alice = signed_in()
    assert alice.post("/settings/maintenance", WORK).status_code == 302
    send(alert("a", component="tor/r3-1"))
    body = alice.get("/settings/maintenance").content.decode()
    assert "suppresses 1 firing alert" in body
    alice.post("/settings/maintenance/row-3/remove")
    assert not MaintenanceWindow.objects.exists()
    assert [one.actor for one in configured("maintenance", "row-3")] == ["user:alice", "user:alice"]


def test_what_cannot_be_read_is_shown_with_its_problem() -> None:
    alice = signed_in()
    alice.post("/settings/maintenance", WORK)
    alice.post("/settings/inhibitions", RULE)
    MaintenanceWindow.objects.update(matchers=[{"name": 7}])
    InhibitionRule.objects.update(source_matchers="text")
    body = alice.get("/settings/maintenance").content.decode()
    assert "Invalid" in body
    assert "Not in effect: matchers[0]" in body
    assert "Not in effect: matchers: must be a list" in alice.get("/settings/inhibitions").content.decode()


def test_work_of_every_week_says_when_it_is_next() -> None:
    alice = signed_in()
    weekly = {"again": "every week", "starts": "2026-01-03T22:00", "time_zone": "Europe/Berlin"}
    alice.post("/settings/maintenance", {**WORK, **weekly})
    row = MaintenanceWindow.objects.get()
    assert (row.rule, row.starts_at.isoformat()) == ("FREQ=WEEKLY", "2026-01-03T21:00:00+00:00")
    assert "FREQ=WEEKLY, Europe/Berlin" in alice.get("/settings/maintenance").content.decode()


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"slug": "no slug"}, "slug"),
        ({"components": "*"}, "matches every component"),
        ({"components": ""}, "are required"),
        ({"span": "soon"}, "must be a duration"),
        ({"starts": "soon"}, "must start at a time"),
        ({"time_zone": "Mars"}, "is not a time zone"),
        ({"rule": "FREQ=SECONDLY"}, "FREQ of"),
        ({"reason": ""}, "blank"),
        ({"matchers": "x"}, "such as"),
    ],
)
def test_work_that_cannot_be_says_why_beside_its_field(change: dict[str, str], says: str) -> None:
    answer = signed_in().post("/settings/maintenance", {**WORK, **change})
    assert answer.status_code == 400
    assert says.lower() in answer.content.decode().lower()
    assert not MaintenanceWindow.objects.exists()


def test_a_rule_is_listed_in_words_and_removed() -> None:
    alice = signed_in()
    assert alice.post("/settings/inhibitions", RULE).status_code == 302
    assert InhibitionRule.objects.get().equal == ["cluster", "zone"]
    assert "no source firing" in alice.get("/settings/inhibitions").content.decode()
    alice.post("/settings/inhibitions/cluster-down/remove")
    assert not InhibitionRule.objects.exists()


def test_a_name_is_taken_once() -> None:
    alice = signed_in()
    alice.post("/settings/inhibitions", RULE)
    answer = alice.post("/settings/inhibitions", RULE)
    assert answer.status_code == 400
    assert InhibitionRule.objects.count() == 1


def test_who_is_not_staff_reads_only() -> None:
    bob = signed_in("bob")
    assert bob.post("/settings/maintenance", WORK).status_code == 400
    assert bob.post("/settings/inhibitions", RULE).status_code == 400
    assert not MaintenanceWindow.objects.exists()
    assert not InhibitionRule.objects.exists()
    assert "Only staff can schedule maintenance" in bob.get("/settings/maintenance").content.decode()


def test_who_is_not_staff_removes_nothing() -> None:
    signed_in().post("/settings/maintenance", WORK)
    signed_in("bob").post("/settings/maintenance/row-3/remove")
    assert MaintenanceWindow.objects.exists()


def test_a_silence_from_the_form_recurs() -> None:
    alice = signed_in()
    form = {"matchers": 'disk="d7"', "span": "1 h", "comment": "backup", "again": "every day"}
    assert alice.post("/silences", {**form, "starts": "2099-01-01T00:00"}).status_code == 302
    assert "FREQ=DAILY, UTC" in alice.get("/silences").content.decode()
    assert alice.post("/silences", {**form, "rule": "FREQ=SECONDLY"}).status_code == 400
