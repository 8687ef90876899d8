"""A network change is validated over HTTP: stored as an event, shown on the incident, as of then, bad input refused."""

from __future__ import annotations

import csv
import io
import json
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents import queries
from incidents.follower import follower
from incidents.reports.models import ReportSchedule
from incidents.reports.produce import current
from incidents.reports.validations import validations
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.integrations.normalized import Alert, Parsed
from ingest.log.read import read_stream, watermark
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")
BEFORE = "class,path\nl1-l2,l1 s1 l2\nl1-l2,l1 s2 l2\nl1-l3,l1 s3 l3\n"
DRAINED = "class,path\nl1-l2,l1 s2 l2\nl1-l3,l1 s3 l3\n"
MOVED = "class,path\nl1-l2,l1 s2 l2\nl1-l3,l1 s2 l3\n"
DRAIN = "zone others = s2 s3\nany(. others .) on . s1 ."


def post(address: str, body: object, key: str) -> Any:
    headers = {"HTTP_AUTHORIZATION": f"Bearer {key}"}
    return Client().post(address, json.dumps(body), content_type="application/json", **headers)  # type: ignore[arg-type]


def test_a_change_is_validated_and_its_incident_shows_the_witness() -> None:
    key = keys.create("deployments", ["alerts", "incidents:read", "incidents:write"])
    at = datetime.now(UTC) - timedelta(minutes=5)
    payload = {"summary": "Drained s1", "source": "s1", "timestamp": at.isoformat()}
    assert post("/v2/change/enqueue", {"routing_key": key, "payload": payload}, key).status_code == 202
    alert = Alert("k", "firing", "Packet loss", group="Loss", labels={"device": "s1"})
    receive(Parsed((alert,)), Delivery("prometheus", "test", "application/json", b"{}"))
    follow_to_the_end(follower())
    number = queries.list_incidents().items[0].incident.number
    get = {"HTTP_AUTHORIZATION": f"Bearer {key}"}
    about = f"/api/v1/incidents/{number}/changes"
    (one,) = Client().get(about, **get).json()["results"]  # type: ignore[arg-type]
    assert (one["validation"], one["validated_at"]) == (None, None)
    address, unvalidated = f"/api/v1/changes/{one['id']}/validation", watermark()

    wrong = {"before": BEFORE, "after": "class\n", "specification": "any(. s9 .) on . s1 ."}
    assert post(address, wrong, key).json()["errors"]["after"][0].startswith("after: neither JSON nor CSV")
    wrong["after"] = MOVED
    assert "no location, zone or path set" in str(post(address, wrong, key).json()["errors"]["specification"])
    assert "must be the text" in str(post(address, {**wrong, "before": 3}, key).json()["errors"]["before"])
    assert post(address.replace(one["id"], "nonsense"), wrong, key).status_code == 404
    assert [event.type for event in read_stream(f"change/{one['id']}")] == ["change.reported"]

    body = {"before": BEFORE, "after": MOVED, "specification": DRAIN}
    for _ in range(2):
        found = post(address, body, key)
        assert found.status_code == 200, found.content
        assert found.json()["validation"]["violations"][0]["witness"] == ["l1", "s2", "l3"]
    violated = watermark()
    assert post(address, {**body, "after": DRAINED}, key).json()["validation"]["verdict"] == "holds"
    types = [event.type for event in read_stream(f"change/{one['id']}")]
    assert types == ["change.reported", "change.validated", "change.validated"]

    def shown(tail: str) -> Any:
        return Client().get(about + tail, **get).json()["results"][0]["validation"]  # type: ignore[arg-type]

    assert shown("")["verdict"] == "holds"
    assert shown(f"?as_of={unvalidated}") is None
    assert shown(f"?as_of={violated}")["verdict"] == "violated"

    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    assert 'data-validation="holds"' in alice.get(f"/incidents/{number}/details").content.decode()
    post(address, body, key)
    page = alice.get(f"/incidents/{number}/details").content.decode()
    assert 'data-validation="violated"' in page
    assert "l1 s2 l3" in page


def test_reports_list_the_validated_changes_of_their_period_as_known_then() -> None:
    key = keys.create("deployments", ["alerts", "incidents:read", "incidents:write"])
    start = datetime.now(UTC).replace(microsecond=0) - timedelta(hours=20)
    for n, source in enumerate(("s1", "s2", "s3")):
        at = (start + timedelta(hours=n)).isoformat()
        payload = {
            "summary": f"Drained {source}",
            "source": source,
            "timestamp": at,
            "component": f"tor/{source}",
        }
        assert post("/v2/change/enqueue", {"routing_key": key, "payload": payload}, key).status_code == 202
    get = {"authorization": f"Bearer {key}"}
    ids = {one["source"]: one["id"] for one in Client().get("/api/v1/changes", headers=get).json()["results"]}
    assert validations("", start, start + timedelta(hours=2), watermark()) is None
    drained = {"before": BEFORE, "after": DRAINED, "specification": DRAIN}
    for source, after in (("s1", DRAINED), ("s2", MOVED), ("s3", MOVED)):
        address = f"/api/v1/changes/{ids[source]}/validation"
        assert post(address, {**drained, "after": after}, key).status_code == 200
    upto = watermark()
    found = validations("", start, start + timedelta(hours=2), upto)
    assert found is not None
    assert (found["validated"], found["violated"]) == (2, 1), "s3 was changed after the period"
    assert [(one["summary"], one["verdict"]) for one in found["changes"]] == [
        ("Drained s2", "violated"),
        ("Drained s1", "holds"),
    ]
    assert found["changes"][0]["witness"] == ["l1", "s2", "l3"]
    post(f"/api/v1/changes/{ids['s2']}/validation", drained, key)
    assert validations("", start, start + timedelta(hours=2), upto) == found
    assert validations("nobodys", start, start + timedelta(hours=2), upto) is None

    ReportSchedule.objects.update(since=start - timedelta(days=400), region="")
    address = f"/api/v1/reports/{current(ReportSchedule.objects.get(name='weekly'), start)}"
    body = Client().get(address, headers=get).json()["validations"]
    assert "Drained s1" in [one["summary"] for one in body["changes"]]
    assert "Drained s1" in Client().get(f"{address}?format=html", headers=get).content.decode()
    text = Client().get(f"{address}?format=csv", headers=get).content.decode()
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["section"] == "validated change"]
    assert {row["title"] for row in rows} == {one["summary"] for one in body["changes"]}
    alice = Client()
    alice.force_login(get_user_model().objects.create(username="alice"))
    assert "Validated network changes" in alice.get(address.removeprefix("/api/v1")).content.decode()
