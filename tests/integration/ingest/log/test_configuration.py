"""Configuration of Dossier is kept as it was and as it is, with who changed it."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import pytest

from incidents.api.incident.views import ConflictError
from incidents.api.teams.members import TeamsView
from incidents.teams.models import Team
from ingest.api import keys
from ingest.queries import Context, configured

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture
def api(client: Any) -> Callable[..., Any]:
    key = keys.create("alice", ["admin"])

    def call(method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        return client.generic(
            method, f"/api/v1/{path}", _json(body), "application/json", HTTP_AUTHORIZATION=f"Bearer {key}"
        )

    return call


def _json(body: dict[str, Any] | None) -> str:
    return "" if body is None else json.dumps(body)


def test_a_change_of_a_team_is_recorded_with_before_and_after_and_who(api: Callable[..., Any]) -> None:
    api("PATCH", "teams/storage", {"name": "Block storage"})
    (event,) = configured("team", "storage")
    assert (event.actor, event.body["before"]["name"], event.body["after"]["name"]) == (
        "key:alice",
        "Storage",
        "Block storage",
    )


def test_a_change_that_changes_nothing_is_not_recorded(api: Callable[..., Any]) -> None:
    api("PATCH", "teams/storage", {"name": "Storage"})
    assert configured("team", "storage") == []


def test_a_refused_removal_is_not_recorded(api: Callable[..., Any]) -> None:
    assert api("DELETE", "teams/network").status_code == 409
    assert configured("team", "network") == []


def test_a_route_that_came_and_went_leaves_both_in_the_log(api: Callable[..., Any]) -> None:
    made = api("POST", "routes", {"order": 900, "pattern": "lamp/*", "team": "compute"}).json()
    assert api("DELETE", f"routes/{made['id']}").status_code == 204
    created, removed = configured("route", made["name"])
    assert created.body["before"] is None
    assert removed.body["after"] is None
    assert removed.body["before"] == created.body["after"]


def test_a_change_made_meanwhile_is_not_undone_by_one_that_was_looked_up_before() -> None:
    catalog, stale = TeamsView.acting_for(Context("user:alice")), Team.objects.get(slug="storage")
    Team.objects.filter(slug="storage").update(description="Disks")
    serializer = catalog.get_serializer(stale, data={"name": "Block storage"}, partial=True)
    serializer.is_valid(raise_exception=True)
    catalog.put(serializer)
    assert Team.objects.get(slug="storage").description == "Disks"


def test_what_was_removed_meanwhile_is_a_conflict() -> None:
    catalog = TeamsView.acting_for(Context("user:alice"))
    gone = Team.objects.create(slug="light", name="Light")
    serializer = catalog.get_serializer(gone, data={"name": "Lamps"}, partial=True)
    serializer.is_valid(raise_exception=True)
    Team.objects.filter(slug="light").delete()
    with pytest.raises(ConflictError, match="Someone else removed this"):
        catalog.put(serializer)
