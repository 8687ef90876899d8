"""The incident API as a machine with a key sees it."""

from __future__ import annotations

import json
import threading
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connections
from django.test import Client

from ingest.api import keys

committed = pytest.mark.usefixtures("log_database")
rolled_back = pytest.mark.django_db
Call = Callable[..., Any]


def caller(*scopes: str, name: str = "ci", region: str = "") -> Call:
    """Sends a request with a key of these scopes; JSON in, response out."""
    headers = {"Authorization": f"Bearer {keys.create(name, scopes, region)}"}
    client = Client(raise_request_exception=True)

    def call(method: str, path: str, body: Any = None, **more: str) -> Any:
        content = body if isinstance(body, bytes) else json.dumps({} if body is None else body)
        sent = "" if method == "GET" else content
        url = f"/api/v1/{path}"
        return client.generic(method, url, sent, "application/json", headers={**headers, **more})

    return call


@pytest.fixture
def api() -> Call:
    User.objects.create(username="bob")
    return caller("incidents:read", "incidents:write")


def opened(api: Call, **fields: Any) -> str:
    response = api("POST", "incidents", {"title": "Disks fail", **fields})
    assert response.status_code == 201
    return str(response.json()["id"])


@rolled_back
def test_a_report_opens_an_incident_that_is_readable_on_return(api: Call) -> None:
    response = api("POST", "incidents", {"title": "Disks fail", "component": "storage_cluster/s7"})
    assert response.status_code == 201
    again = api("GET", f"incidents/{response.json()['number']}").json()
    assert again == response.json()
    assert (again["team"], again["state"]) == ("storage", "open")


@rolled_back
def test_an_incident_carries_every_field_of_the_contract(api: Call) -> None:
    promised = """id number title state severity component team owner dedup_key confidence verdict alerts hops
        opened_at acknowledged_at resolved_at confirmed_cause position url"""
    assert set(promised.split()) <= set(api("GET", f"incidents/{opened(api)}").json())


@committed
def test_sixteen_posts_of_one_key_at_once_are_one_201_and_fifteen_200(api: Call) -> None:
    barrier = threading.Barrier(16)

    def post(_: int) -> int:
        barrier.wait()
        try:
            status: int = api("POST", "incidents", {"title": "Disk 7", "dedup_key": "disk7"}).status_code
            return status
        finally:
            connections.close_all()

    with ThreadPoolExecutor(16) as pool:
        assert Counter(pool.map(post, range(16))) == {201: 1, 200: 15}


@rolled_back
def test_every_answer_that_recorded_has_a_receipt_that_says_what_became_of_it(api: Call) -> None:
    response = api("POST", "incidents", {"title": "Disks fail"})
    receipt = api("GET", f"receipts/{response['Dossier-Receipt']}").json()
    assert (receipt["outcome"], receipt["incident"]["id"]) == ("opened", response.json()["id"])
    assert [event["type"] for event in receipt["events"]] == ["incident.opened"]


@rolled_back
def test_a_key_without_read_sees_its_own_receipts_only(api: Call) -> None:
    mine = caller("incidents:write", name="sender")
    theirs = api("POST", "incidents", {"title": "x"})["Dossier-Receipt"]
    own = mine("POST", "incidents", {"title": "y"})["Dossier-Receipt"]
    statuses = [mine("GET", f"receipts/{receipt}").status_code for receipt in (own, theirs)]
    assert statuses == [200, 404]


@rolled_back
@pytest.mark.parametrize(
    "receipt", ["nonsense", "%00", "i-" + "0" * 8 + "-0000-0000-0000-" + "0" * 12 + "-1-1"]
)
def test_an_unknown_receipt_is_not_found(api: Call, receipt: str) -> None:
    assert api("GET", f"receipts/{receipt}").status_code == 404


@rolled_back
@pytest.mark.parametrize(
    ("verb", "body", "expected"),
    [
        ("acknowledge", {}, {"state": "acknowledged", "owner": "key:ci"}),
        ("assign", {"owner": "bob"}, {"owner": "bob"}),
        ("hand_over", {"team": "network", "reason": "the ToR drops"}, {"team": "network", "hops": 1}),
        ("set_severity", {"severity": "critical"}, {"severity": "critical"}),
        ("set_title", {"title": "New"}, {"title": "New"}),
        ("comment", {"text": "Looking."}, {"state": "open"}),
        ("link", {"href": "https://example.org"}, {"links": [{"href": "https://example.org", "text": ""}]}),
        ("resolve", {"confirmed_cause": "tor/t1"}, {"state": "resolved", "confirmed_cause": "tor/t1"}),
    ],
)
def test_every_verb_is_one_event_with_a_receipt(
    api: Call, verb: str, body: dict[str, Any], expected: dict[str, Any]
) -> None:
    id_ = opened(api)
    response = api("POST", f"incidents/{id_}/{verb}", body)
    assert response.status_code == 200
    assert expected.items() <= response.json().items()
    assert len(api("GET", f"receipts/{response['Dossier-Receipt']}").json()["events"]) == 1


@rolled_back
def test_acknowledging_twice_is_a_conflict_with_who_and_when(api: Call) -> None:
    id_ = opened(api)
    api("POST", f"incidents/{id_}/acknowledge")
    response = api("POST", f"incidents/{id_}/acknowledge")
    assert (response.status_code, response["Content-Type"]) == (409, "application/problem+json")
    assert "already acknowledged, by key:ci at" in response.json()["detail"]


@rolled_back
def test_what_is_so_already_is_done_without_a_receipt(api: Call) -> None:
    id_ = opened(api, title="Same")
    response = api("POST", f"incidents/{id_}/set_title", {"title": "Same"})
    assert (response.status_code, "Dossier-Receipt" in response) == (200, False)


@rolled_back
def test_a_verb_that_there_is_not_is_not_found(api: Call) -> None:
    assert api("POST", f"incidents/{opened(api)}/explode").status_code == 404


@rolled_back
def test_a_related_incident_is_linked_and_links_back(api: Call) -> None:
    one, other = opened(api), opened(api, title="Shelf 2")
    linked = api("POST", f"incidents/{one}/link", {"incident": other})
    back = api("GET", f"incidents/{other}").json()["links"][0]["href"]
    assert (linked.status_code, back) == (200, linked.json()["url"])
    assert len(api("GET", f"receipts/{linked['Dossier-Receipt']}").json()["events"]) == 1


@rolled_back
@pytest.mark.parametrize("body", [{}, {"href": "https://x.example", "incident": 1}, {"incident": 99999}])
def test_a_link_leads_to_one_thing_that_is_there(api: Call, body: dict[str, Any]) -> None:
    assert api("POST", f"incidents/{opened(api)}/link", body).status_code == 400


@rolled_back
def test_a_comment_is_kept_as_markdown_with_what_is_attached(api: Call) -> None:
    id_, log = opened(api), {"href": "https://logs.example/t12", "text": "Log of t12"}
    api("POST", f"incidents/{id_}/comment", {"text": "Two **optics** flap.", "links": [log]})
    said = api("GET", f"incidents/{id_}/events").json()["results"][-1]["body"]
    assert said == {"text": "Two **optics** flap.", "links": [log]}


@rolled_back
@pytest.mark.parametrize(
    ("links", "field"),
    [
        ([{"href": "javascript:alert(1)"}], "links[0].href"),
        ([{"href": "https://x.example"}] * 11, "links"),
        ("x", "links"),
    ],
)
def test_what_cannot_be_attached_is_refused_by_field(api: Call, links: Any, field: str) -> None:
    response = api("POST", f"incidents/{opened(api)}/comment", {"text": "see", "links": links})
    assert (response.status_code, list(response.json()["errors"])) == (400, [field])


DEEP = b'{"title": "x", "labels": ' + b"[" * 50_000 + b"]" * 50_000 + b"}"


@rolled_back
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "title"),
        ({"title": None}, "title"),
        ({"title": 7}, "title"),
        ({"title": "nul\0"}, "title"),
        ({"title": "\ud800"}, "title"),
        ({"title": "x" * 301}, "title"),
        ({"title": "x", "colour": "red"}, "colour"),
        ({"title": "x", "component": "s7"}, "component"),
        ({"title": "x", "component": ["disk/7"]}, "component"),
        ({"title": "x", "severity": "awful"}, "severity"),
        ({"title": "x", "severity": ["error"]}, "severity"),
        ({"title": "x", "dedup_key": ""}, "dedup_key"),
        ({"title": "x", "labels": [1]}, "labels"),
        ({"title": "x", "labels": {"a": {"b": 1}}}, "labels.a"),
        ({"title": "x", "links": 7}, "links"),
        ({"title": "x", "links": [{"href": "javascript:alert(1)"}]}, "links[0].href"),
        ({"title": "x", "evidence": {}}, "evidence"),
        ({"title": "x", "evidence": [{"kind": "text", "title": "t", "text": 3}]}, "evidence[0].text"),
        ({"title": "x", "evidence": [{"kind": "text"}] * 21}, "evidence"),
        ([1, 2], "body"),
    ],
)
def test_a_wrong_report_is_refused_by_field_and_stores_nothing(api: Call, body: Any, field: str) -> None:
    response = api("POST", "incidents", body)
    assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")
    assert field in response.json()["errors"]
    assert api("GET", "incidents").json()["results"] == []


@rolled_back
@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"\xff\xfe", b'{"title": NaN}', b'{"title": 1e999}', b'{"title": "a", "title": "b"}', DEEP],
)
def test_what_is_not_json_is_refused(api: Call, body: bytes) -> None:
    response = api("POST", "incidents", body)
    assert (response.status_code, response["Content-Type"]) == (400, "application/problem+json")


@rolled_back
def test_a_huge_body_is_too_large(api: Call) -> None:
    assert api("POST", "incidents", b" " * (2 * 2**20 + 1)).status_code == 413


@rolled_back
@pytest.mark.parametrize(
    "query",
    [
        "as_of=yesterday",
        "as_of=2026-13-45T00:00:00Z",
        "as_of=2026-11-21",
        "as_of=%00",
        "cursor=garbage",
        "cursor=%F0%9F%92%A3",
        "cursor=WyJuZXdlc3QiLCBmYWxzZSwgWyJ4Il1d",
        "limit=0",
        "limit=201",
        "limit=x",
        "limit=-1",
        "order=random",
        "state=broken",
        "number=x",
        "number=9999999999999999999999",
        "confidence_min=NaN",
        "opened_after=now",
        "title=%00",
        "id=1",
        "colour=red",
    ],
)
def test_a_wrong_parameter_is_refused_by_name(api: Call, query: str) -> None:
    response = api("GET", f"incidents?{query}")
    assert response.status_code == 400
    assert query.partition("=")[0] in response.json()["errors"]


@rolled_back
@pytest.mark.parametrize(
    "reference", ["0", "99", "x", "%00", "9" * 30, "00000000-0000-4000-8000-000000000000"]
)
def test_an_unknown_incident_is_not_found(api: Call, reference: str) -> None:
    for method, path in (("GET", ""), ("GET", "/events"), ("GET", "/evidence"), ("POST", "/acknowledge")):
        assert api(method, f"incidents/{reference}{path}").status_code == 404


@rolled_back
@pytest.mark.parametrize(
    ("scopes", "method", "status"),
    [
        (["incidents:read"], "GET", 200),
        (["incidents:read"], "POST", 403),
        (["incidents:write"], "GET", 403),
        (["incidents:write"], "POST", 201),
        (["telemetry"], "GET", 403),
        (["admin"], "POST", 201),
    ],
)
def test_a_scope_opens_its_own_endpoints(scopes: list[str], method: str, status: int) -> None:
    assert caller(*scopes)(method, "incidents", {"title": "x"}).status_code == status


@rolled_back
def test_without_a_key_the_answer_is_401() -> None:
    response = Client().get("/api/v1/incidents")
    assert (response.status_code, response["Content-Type"]) == (401, "application/problem+json")


@rolled_back
def test_a_person_who_is_signed_in_may_use_it_with_a_csrf_token() -> None:
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.create_user("alice"))
    post = {"data": '{"title": "x"}', "content_type": "application/json"}
    assert client.get("/api/v1/incidents").status_code == 200
    assert client.post("/api/v1/incidents", **post).status_code == 403  # type: ignore[arg-type]
    client.cookies["csrftoken"] = "a" * 32
    answer = client.post("/api/v1/incidents", headers={"X-CSRFToken": "a" * 32}, **post)  # type: ignore[arg-type]
    assert (answer.status_code, answer.json()["opened_by"]) == (201, "alice")


@rolled_back
def test_an_unchanged_incident_is_not_sent_again(api: Call) -> None:
    id_ = opened(api)
    etag = api("GET", f"incidents/{id_}")["ETag"]
    assert api("GET", f"incidents/{id_}", None, **{"If-None-Match": etag}).status_code == 304
    api("POST", f"incidents/{id_}/comment", {"text": "x"})
    assert api("GET", f"incidents/{id_}", None, **{"If-None-Match": etag}).status_code == 200


@rolled_back
def test_an_unchanged_list_is_not_sent_again(api: Call) -> None:
    id_ = opened(api)
    etag = api("GET", "incidents")["ETag"]
    assert api("GET", "incidents", None, **{"If-None-Match": etag}).status_code == 304
    api("POST", f"incidents/{id_}/comment", {"text": "x"})
    assert api("GET", "incidents", None, **{"If-None-Match": etag}).status_code == 200


@committed
def test_as_of_shows_an_incident_as_it_stood(api: Call) -> None:
    first = api("POST", "incidents", {"title": "Before"}).json()
    later = api("POST", f"incidents/{first['id']}/set_title", {"title": "After"}).json()
    past = api("GET", f"incidents/{first['id']}?as_of={first['position']}").json()
    assert (past, later["title"]) == (first, "After")


@committed
def test_as_of_a_time_before_the_opening_is_not_found(api: Call) -> None:
    assert api("GET", f"incidents/{opened(api)}?as_of=2020-01-01T00:00:00Z").status_code == 404


@committed
def test_as_of_shows_the_list_as_it_stood(api: Call) -> None:
    first = api("POST", "incidents", {"title": "First"}).json()
    opened(api)
    listed = api("GET", f"incidents?as_of={first['position']}").json()["results"]
    assert listed == [first]


@rolled_back
def test_the_timeline_tells_who_did_what(api: Call) -> None:
    id_ = opened(api)
    api("POST", f"incidents/{id_}/comment", {"text": "Looking."}, **{"X-Request-ID": "req-7"})
    entry = api("GET", f"incidents/{id_}/events").json()["results"][1]
    assert (entry["text"], entry["actor"], entry["trace"]) == ("key ci: Looking.", "key:ci", "req-7")


@rolled_back
def test_posted_evidence_comes_back_as_it_was_sent(api: Call) -> None:
    piece = {"kind": "table", "title": "Disks", "columns": ["disk", "errors"], "rows": [["disk/7", 41]]}
    id_ = opened(api, evidence=[piece])
    found = api("GET", f"incidents/{id_}/evidence").json()["results"][0]
    assert piece.items() <= found.items()


@rolled_back
def test_a_report_takes_the_region_of_its_key() -> None:
    east = caller("incidents:read", "incidents:write", region="east")
    assert east("GET", f"incidents/{opened(east)}").json()["region"] == "east"


@committed
def test_a_report_with_an_idempotency_key_is_recorded_once(api: Call) -> None:
    report, header = {"title": "Disks fail", "severity": "error"}, {"Idempotency-Key": "deploy-7"}
    first = api("POST", "incidents", report, **header)
    again = api("POST", "incidents", {"severity": "error", "title": "Disks fail"}, **header)
    assert (first.status_code, again.status_code) == (201, 201)
    assert again.json()["id"] == first.json()["id"]
    assert (again["Dossier-Receipt"], again["Location"]) == (first["Dossier-Receipt"], first["Location"])
    assert len(api("GET", "incidents").json()["results"]) == 1


@committed
def test_an_idempotency_key_is_good_for_one_report(api: Call) -> None:
    api("POST", "incidents", {"title": "Disks fail"}, **{"Idempotency-Key": "deploy-7"})
    other = api("POST", "incidents", {"title": "Fans fail"}, **{"Idempotency-Key": "deploy-7"})
    assert other.status_code == 409
    assert "another report" in other.json()["detail"]
    bob = caller("incidents:write", name="bob")
    assert (
        bob("POST", "incidents", {"title": "Fans fail"}, **{"Idempotency-Key": "deploy-7"}).status_code == 201
    )
    assert api("POST", "incidents", {"title": "x"}, **{"Idempotency-Key": "k" * 256}).status_code == 400


@committed
def test_a_repeated_report_joins_the_open_incident_once(api: Call) -> None:
    opened(api, dedup_key="disks")
    joins = [
        api("POST", "incidents", {"title": "More", "dedup_key": "disks"}, **{"Idempotency-Key": "a"})
        for _ in range(2)
    ]
    assert [answer.status_code for answer in joins] == [200, 200]
    assert joins[0]["Dossier-Receipt"] == joins[1]["Dossier-Receipt"]


@committed
def test_the_same_report_sent_at_the_same_time_is_one_incident(api: Call) -> None:
    def send(_: int) -> str:
        try:
            answer = api("POST", "incidents", {"title": "Disks fail"}, **{"Idempotency-Key": "together"})
            return str(answer.json()["id"])
        finally:
            connections.close_all()

    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(send, range(4)))) == 1
