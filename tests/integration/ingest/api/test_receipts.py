"""A change of the configuration over the API has a receipt, which says what became of it."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.incidents.incident.test_api import Call, caller

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def admin() -> Call:
    return caller("admin", name="tooling")


def told(call: Call, answer: Any) -> Any:
    return call("GET", f"receipts/{answer['Dossier-Receipt']}").json()


def test_what_is_made_changed_and_removed_has_a_receipt(admin: Call) -> None:
    made = admin("POST", "teams", {"slug": "disks", "name": "Disks"})
    changed = admin("PATCH", "teams/disks", {"name": "All disks"})
    removed = admin("DELETE", "teams/disks")
    answers = (made, changed, removed)
    assert [answer.status_code for answer in answers] == [201, 200, 204]
    receipts = [told(admin, answer) for answer in answers]
    assert [(one["kind"], one["outcome"]) for one in receipts] == [
        ("configuration", f"1 team {done}; configuration does not open incidents")
        for done in ("made", "changed", "removed")
    ]
    assert [event["type"] for one in receipts for event in one["events"]] == ["configuration.changed"] * 3


def test_what_changes_nothing_and_what_is_refused_has_none(admin: Call) -> None:
    admin("POST", "teams", {"slug": "disks", "name": "Disks"})
    same = admin("PATCH", "teams/disks", {"name": "Disks"})
    refused = admin("POST", "teams", {"slug": "no slug", "name": ""})
    assert (same.status_code, refused.status_code) == (200, 400)
    assert not any("Dossier-Receipt" in answer for answer in (same, refused, admin("GET", "teams")))


def test_a_receipt_is_for_who_made_the_change(admin: Call) -> None:
    receipt = admin("POST", "teams", {"slug": "disks", "name": "Disks"})["Dossier-Receipt"]
    sender = caller("alerts", name="prometheus")
    assert sender("GET", f"receipts/{receipt}").status_code == 404
    assert admin("GET", "receipts/c-0-1").status_code == 404
    assert admin("GET", "receipts/c-0-ffffffffffffffff").status_code == 404
