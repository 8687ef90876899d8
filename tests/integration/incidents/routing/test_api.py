"""Teams and routes over HTTP: what would not work is refused, and what is changed decides the next incident."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.incidents.incident.test_api import caller

pytestmark = pytest.mark.django_db


def test_two_default_teams_are_never_there() -> None:
    admin = caller("admin")
    assert admin("PATCH", "teams/network", {"is_default": True}).status_code == 200
    teams = admin("GET", "teams").json()["results"]
    assert [team["slug"] for team in teams if team["is_default"]] == ["network"]


def test_a_new_route_decides_the_next_ticket() -> None:
    admin = caller("admin")
    admin("POST", "teams", {"slug": "gpu", "name": "GPU"})
    assert admin("POST", "routes", {"order": 0, "pattern": "host/gpu*", "team": "gpu"}).status_code == 201
    assert admin("POST", "incidents", {"title": "x", "component": "host/gpu7"}).json()["team"] == "gpu"


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("POST", "routes", {"order": -1, "pattern": "a/*", "team": "network"}, 400),
        ("POST", "routes", {"order": 99, "pattern": "a", "team": "network"}, 400),
        ("POST", "routes", {"order": 99, "pattern": "a/*", "team": "nobody"}, 400),
        ("POST", "routes", {"order": 99, "pattern": "a/*", "team": "network", "x": 1}, 400),
        ("POST", "routes", {"order": 10**30, "pattern": "a/*", "team": "network"}, 400),
        ("POST", "teams", {"slug": "a b", "name": "x"}, 400),
        ("POST", "teams", {"slug": "a", "name": "\0"}, 400),
        ("PATCH", "teams/on-call", {"is_default": False}, 400),
        ("DELETE", "teams/on-call", None, 409),
        ("DELETE", "teams/network", None, 409),
        ("DELETE", "teams/%00", None, 404),
        ("DELETE", "routes/x", None, 404),
    ],
)
def test_configuration_that_would_not_work_is_refused(method: str, path: str, body: Any, status: int) -> None:
    assert caller("admin")(method, path, body).status_code == status


def test_configuration_needs_an_admin() -> None:
    api = caller("incidents:read", "incidents:write")
    assert api("POST", "teams", {"slug": "a", "name": "A"}).status_code == 403
    assert api("GET", "teams").status_code == 200
