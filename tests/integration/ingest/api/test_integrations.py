"""Integrations over /api/v1: for keys with the scope admin and nobody else."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from ingest.api import keys

pytestmark = pytest.mark.usefixtures("log_database")
NEW = {"name": "grafana", "scopes": ["alerts"], "endpoints": ["grafana"]}


@pytest.fixture
def admin(log_database: str) -> str:  # noqa: ARG001
    return keys.create("boss", ["admin"])


def call(key: str, method: str, path: str = "", body: Any = None) -> Any:
    request = getattr(Client(), method)
    headers = {"HTTP_AUTHORIZATION": f"Bearer {key}"}
    if body is None:
        return request(f"/api/v1/integrations{path}", **headers)
    return request(
        f"/api/v1/integrations{path}", json.dumps(body), content_type="application/json", **headers
    )


def test_an_integration_is_made_listed_and_revoked(admin: str) -> None:
    made = call(admin, "post", body=NEW)
    assert made.status_code == 201
    assert keys.find(made.json()["key"]) is not None
    assert [one["name"] for one in call(admin, "get").json()["results"]] == ["boss", "grafana"]
    assert call(admin, "delete", "/grafana").status_code == 204
    assert keys.find(made.json()["key"]) is None


def test_no_list_holds_a_key(admin: str) -> None:
    made = call(admin, "post", body=NEW).json()["key"]
    assert made not in call(admin, "get").content.decode()


@pytest.mark.parametrize(
    ("change", "field"),
    [({"scopes": ["all"]}, "scopes"), ({"name": "boss"}, "name"), ({"mapping": {"title": 7}}, "mapping")],
)
def test_what_cannot_be_made_is_refused_by_field(admin: str, change: dict[str, Any], field: str) -> None:
    answer = call(admin, "post", body={**NEW, **change})
    assert (answer.status_code, list(answer.json()["errors"])) == (400, [field])


def test_a_rotation_keeps_the_key_before_for_the_overlap(admin: str) -> None:
    first = call(admin, "post", body=NEW).json()["key"]
    second = call(admin, "post", "/grafana/rotate", {"overlap_seconds": 60}).json()["key"]
    assert first != second
    assert all(keys.find(one) for one in (first, second))


def test_a_rotation_without_overlap_ends_the_key_before(admin: str) -> None:
    first = call(admin, "post", body=NEW).json()["key"]
    call(admin, "post", "/grafana/rotate", {"overlap_seconds": 0})
    assert keys.find(first) is None


def test_a_mapping_is_tried_with_the_reason_for_each_field(admin: str) -> None:
    body = {"mapping": {"title": "{a}", "key": "$.a"}, "payload": {"a": "Fan"}}
    (item,) = call(admin, "post", "/boss/preview", body).json()["items"]
    assert (item["alert"]["title"], item["why"]["title"]) == ("Fan", "$.a is 'Fan'")


@pytest.mark.parametrize(
    ("method", "path"),
    [("get", ""), ("post", ""), ("delete", "/boss"), ("post", "/boss/rotate"), ("post", "/boss/preview")],
)
def test_a_key_without_the_scope_admin_is_refused(admin: str, method: str, path: str) -> None:  # noqa: ARG001
    weak = keys.create("weak", ["alerts", "incidents:write"])
    assert call(weak, method, path, {} if method == "post" else None).status_code == 403


def test_people_who_are_not_staff_are_refused(admin: str) -> None:  # noqa: ARG001
    client = Client()
    client.force_login(get_user_model().objects.create(username="bob"))
    assert client.get("/api/v1/integrations").status_code == 403


@pytest.mark.parametrize(
    ("method", "path"), [("delete", "/x"), ("post", "/x/rotate"), ("post", "/x/preview")]
)
def test_an_unknown_integration_is_not_found(admin: str, method: str, path: str) -> None:
    assert call(admin, method, path, {"payload": {}} if method == "post" else None).status_code == 404


def test_a_body_that_is_nested_without_end_is_refused(admin: str) -> None:
    headers: dict[str, Any] = {"HTTP_AUTHORIZATION": f"Bearer {admin}"}
    body = b'{"payload": ' + b"[" * 100_000
    answer = Client().post(
        "/api/v1/integrations/boss/preview", body, content_type="application/json", **headers
    )
    assert answer.status_code == 400


def test_the_list_has_pages_both_ways(admin: str) -> None:
    for name in ("a", "b", "c"):
        keys.create(name, ["alerts"])
    address, seen = "/api/v1/integrations?limit=2", []
    while address:
        page = Client().get(address, headers={"Authorization": f"Bearer {admin}"}).json()
        seen.append([one["name"] for one in page["results"]])
        address, last = page["next"], page
    first = Client().get(last["previous"], headers={"Authorization": f"Bearer {admin}"}).json()
    names = [name for page in seen for name in page]
    assert sorted(names) == names
    assert [one["name"] for one in first["results"]] == seen[-2]


@pytest.mark.parametrize(
    "query", ["limit=0", "limit=201", "limit=two", "cursor=x", "cursor=WyJuYW1lIixmYWxzZSxbWzFdXV0"]
)
def test_a_page_that_cannot_be_asked_for_is_an_error(admin: str, query: str) -> None:
    assert call(admin, "get", f"?{query}", None).status_code == 400
