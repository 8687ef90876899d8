"""Data sources: configured with a secret that never comes back, and asked as Prometheus is, with a real server."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from datetime import timedelta
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from ipaddress import ip_network
from typing import Any
from urllib.parse import parse_qs, urlencode

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client

from deploy.configuration import configured
from incidents.api.config.views import exported
from incidents.audit.follower import FOLLOWER
from incidents.data_sources import prometheus
from incidents.data_sources.models import DataSource
from incidents.data_sources.prometheus import DataSourceError, query_range
from incidents.follower import follower
from incidents.queries import list_incidents
from ingest.api import keys
from ingest.queries import now_utc
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")
TOKEN = "Bearer abc-123"


class Prometheus(ThreadingHTTPServer):
    """Speaks `/api/v1/query_range` of Prometheus. `answer` replaces the next answers: status and body."""

    answer: tuple[int, bytes] | None = None

    def __init__(self) -> None:
        self.asked: list[dict[str, str]] = []
        super().__init__(("127.0.0.1", 0), Handler)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}"


class Handler(BaseHTTPRequestHandler):
    server: Prometheus

    def do_POST(self) -> None:
        form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
        given = {name: values[0] for name, values in form.items()}
        self.server.asked.append({**given, "path": self.path, "auth": self.headers.get("Authorization", "")})
        status, body = self.server.answer or (200, self._series(given))
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _series(self, given: dict[str, str]) -> bytes:
        start, end, step = (int(given[name]) for name in ("start", "end", "step"))
        values = [[at, "NaN" if at == start else str(90 + at % 7)] for at in range(start, end + 1, step)]
        rows = [{"metric": {"__name__": "disk", "host": host}, "values": values} for host in ("a", "b")]
        return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": rows}}).encode()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def server(settings: Any) -> Iterator[Prometheus]:
    settings.OUTBOUND_ALLOWED_NETWORKS = [ip_network("127.0.0.0/8")]
    prometheus._cached.clear()
    one = Prometheus()
    thread = threading.Thread(target=one.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    yield one
    one.shutdown()
    thread.join()
    one.server_close()


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_user("alice", is_staff=True))
    return client


def source(server: Prometheus, **fields: str) -> DataSource:
    return DataSource.objects.create(name="dc1", url=server.url, **fields)


def asked(of: DataSource, query: str = "disk") -> prometheus.Answer:
    now = now_utc()
    return query_range(of, query, now - timedelta(hours=1), now)


def fire(link: str, **annotations: str) -> int:
    client = Client(headers={"Authorization": f"Bearer {keys.create('prometheus', ['alerts'])}"})
    alert = {
        "labels": {"alertname": "DiskFull", "component": "disk/d1"},
        "annotations": {"runbook_url": "https://wiki.example.com/disk", **annotations},
        "generatorURL": link,
    }
    assert client.post("/api/v2/alerts", [alert], "application/json").status_code == 200
    follow_to_the_end(follower())
    (found,) = list_incidents().items
    return found.incident.number


def graph(base: str) -> str:
    return f"{base}/graph?{urlencode({'g0.expr': 'disk > 90', 'g0.tab': '1'})}"


def test_a_source_is_asked_once_for_what_many_look_at(server: Prometheus) -> None:
    one = source(server, authorization=TOKEN)
    found = asked(one)
    assert asked(one) == found
    (question,) = server.asked
    assert (question["path"], question["auth"], question["query"]) == ("/api/v1/query_range", TOKEN, "disk")
    assert [series.name for series in found.series] == ["host=a", "host=b"]
    assert 200 < len(found.series[0].points) <= 241


@pytest.mark.parametrize(
    ("answer", "why"),
    [
        (
            (400, b'{"status":"error","errorType":"bad_data","error":"parse error"}'),
            "answered 400: parse error",
        ),
        ((401, b"who?"), "its authorization was refused"),
        ((302, b""), "redirects are not followed"),
        ((200, b"<html>"), "without the JSON of a range query"),
        ((200, b'{"status":"success","data":{"result":[{"values":[["x"]]}]}}'), "without the JSON"),
        ((200, b"[" + b" " * prometheus.LARGEST), "more than 2 MB"),
    ],
)
def test_a_source_that_fails_is_named_with_the_reason(
    server: Prometheus, answer: tuple[int, bytes], why: str
) -> None:
    server.answer = answer
    with pytest.raises(DataSourceError, match=why):
        asked(source(server))


def test_a_source_that_is_away_or_not_allowed_is_named(server: Prometheus) -> None:
    away = DataSource.objects.create(name="away", url="http://127.0.0.1:1")
    with pytest.raises(DataSourceError, match="away did not answer"):
        asked(away)
    del server


def test_the_incident_of_an_alert_draws_its_metric(server: Prometheus, staff: Client) -> None:
    source(server, external_url="http://prometheus.example.com")
    DataSource.objects.create(name="another", url="https://prometheus.example.org")
    number = fire(graph("http://prometheus.example.com"), value="93.1%")
    page = staff.get(f"/incidents/{number}").content.decode()
    assert server.asked == []
    assert f'hx-get="/incidents/{number}/metric"' in page
    assert 'href="https://wiki.example.com/disk"' in page
    body = staff.get(f"/incidents/{number}/metric").content.decode()
    assert [one["query"] for one in server.asked] == ["disk"]
    assert "<strong>93.1%</strong>" in body
    assert "threshold &gt; 90" in body
    assert "data-chart>" in body


def test_without_a_source_the_incident_links_to_the_graph(staff: Client) -> None:
    number = fire(graph("http://prometheus.example.com"))
    body = staff.get(f"/incidents/{number}/metric").content.decode()
    assert "data-chart>" not in body
    assert "http://prometheus.example.com/graph?g0.expr=disk" in body
    assert "data source</a>" in body


def test_a_source_that_does_not_answer_is_said_on_the_incident(server: Prometheus, staff: Client) -> None:
    server.answer = (503, b'{"status":"error","error":"loading the log"}')
    source(server)
    body = staff.get(f"/incidents/{fire(graph(server.url))}/metric").content.decode()
    assert "No graph: dc1 answered 503: loading the log." in body


def test_the_authorization_is_encrypted_and_never_shown(server: Prometheus, staff: Client) -> None:
    given = {"name": "dc1", "url": f"{server.url}/", "authorization": TOKEN}
    assert staff.post("/settings/data_sources", given).status_code == 302
    assert staff.post("/settings/data_sources", {"change": "dc1", "url": server.url}).status_code == 302
    row = DataSource.objects.get()
    assert (row.url, row.authorization) == (server.url, TOKEN)
    with connection.cursor() as cursor:
        cursor.execute('SELECT "authorization"::text FROM data_sources_datasource')
        assert "abc-123" not in cursor.fetchone()[0]
    follow_to_the_end(FOLLOWER)
    pages = [staff.get(path).content.decode() for path in ("/settings/data_sources", "/settings/audit")]
    key = keys.create("admin", ["admin"])
    pages.append(
        Client(headers={"Authorization": f"Bearer {key}"}).get("/api/v1/data_sources").content.decode()
    )
    pages.append(str(exported(configured())["data_sources"]))
    assert "${DATA_SOURCE_AUTHORIZATION_DC1}" in pages[-1]
    assert all("dc1" in one for one in pages)
    assert not any("abc-123" in one for one in pages)
    posted = staff.post("/settings/data_sources/dc1/test", follow=True)
    assert "dc1 answers queries" in posted.content.decode()
    assert server.asked[-1]["query"] == "vector(1)"
    staff.post("/settings/data_sources/dc1/remove")
    assert not DataSource.objects.exists()


@pytest.mark.parametrize(
    ("field", "value", "why"),
    [
        ("url", "ftp://prometheus", "must begin with http:// or https://"),
        ("url", "http://169.254.169.254", "link-local"),
        ("url", "https://prometheus.example.com/?a=b", "without a query"),
        ("external_url", "prometheus", "must begin with http:// or https://"),
        ("authorization", "Bearer a\nX: b", "one line"),
        ("name", "dc1", "already"),
    ],
)
def test_a_bad_source_is_refused_with_what_was_typed(staff: Client, field: str, value: str, why: str) -> None:
    DataSource.objects.create(name="dc1", url="https://prometheus.example.org")
    given = {"name": "dc2", "url": "https://prometheus.example.com", field: value}
    answer = staff.post("/settings/data_sources", given)
    assert answer.status_code == 400
    assert why.lower() in answer.content.decode().lower()
    assert DataSource.objects.count() == 1


def test_only_staff_configures_sources(staff: Client) -> None:
    del staff
    bob = Client()
    bob.force_login(User.objects.create_user("bob"))
    given = {"name": "dc2", "url": "https://prometheus.example.com"}
    assert bob.get("/settings/data_sources").status_code == 403
    assert bob.post("/settings/data_sources", given).status_code == 403
    assert not DataSource.objects.exists()
