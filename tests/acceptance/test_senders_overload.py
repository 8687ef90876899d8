"""Real senders that are told to come later, because their key sends too much: what they send arrives all the same."""

from __future__ import annotations

import json
import re
import ssl
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pagerduty
import pytest
from django.db import connection
from opentelemetry._logs import SeverityNumber
from opentelemetry.exporter.otlp.proto.http._log_exporter import OTLPLogExporter
from opentelemetry.sdk._logs import LoggerProvider
from opentelemetry.sdk._logs.export import SimpleLogRecordProcessor

from ingest.api import keys
from tests.acceptance.stack import wait_for
from tests.acceptance.web import Web
from tests.senders.daemons import ALERTMANAGER, alertmanager, missing
from tests.senders.recording import Recorded, Recorder, throw_away_certificate

SENT = 13
"""Requests of each sender, three more than a key may send at once where it may send one a second."""


@pytest.fixture
def little(monkeypatch: pytest.MonkeyPatch) -> None:
    """Limit of what a key may send in the web process of the test."""
    monkeypatch.setenv("DOSSIER_INGEST_RATE_PER_KEY", "1")


@pytest.fixture
def web(little: None, web: Web) -> Web:  # noqa: ARG001
    return web


@pytest.mark.skipif(bool(missing(ALERTMANAGER)), reason=missing(ALERTMANAGER))
def test_senders_that_are_told_to_come_later_come_again(web: Web, tmp_path: Path) -> None:
    senders = {"otlp-logs": log_errors, "pagerduty": trigger, "alertmanager": notify}
    of = {endpoint: keys.create(endpoint, ["alerts"]) for endpoint in senders}
    with ThreadPoolExecutor() as threads:
        done = [
            threads.submit(send, web.address, of[endpoint], tmp_path) for endpoint, send in senders.items()
        ]
    assert [one.exception() for one in done] == [None] * len(senders)
    wait_for(lambda: stored() == dict.fromkeys(senders, SENT), 60, "all alerts")
    with urllib.request.urlopen(f"{web.address}/metrics", timeout=20) as answer:
        refused = re.findall(
            r'^dossier_ingest_requests_rejected_total\{endpoint="(.+?)"', answer.read().decode(), re.MULTILINE
        )
    assert set(refused) == set(senders)


def stored() -> dict[str, int]:
    """By integration how many alerts it sent, those that it sent again among them."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT integration, count(*) + sum(repeats) FROM alert GROUP BY 1")
        return {name: int(count) for name, count in cursor.fetchall()}


def log_errors(address: str, key: str, _: Path) -> None:
    """The SDK of OpenTelemetry, one error a request."""
    loggers = LoggerProvider()
    exporter = OTLPLogExporter(f"{address}/v1/logs", headers={"authorization": f"Bearer {key}"})
    loggers.add_log_record_processor(SimpleLogRecordProcessor(exporter))
    for _number in range(SENT):
        loggers.get_logger("shop").emit(severity_number=SeverityNumber.ERROR, body="no space")
    loggers.shutdown()


def trigger(address: str, key: str, directory: Path) -> None:
    """PagerDuty's client, over https."""

    def forward(request: Recorded) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json"}
        told = urllib.request.Request(f"{address}{request.path}", request.body, headers)
        try:
            with urllib.request.urlopen(told, timeout=60) as answer:
                return answer.status, answer.read()
        except urllib.error.HTTPError as error:
            return error.code, error.read()

    certificate = throw_away_certificate(directory)
    trusting = ssl.create_default_context(cafile=str(certificate[0]))
    with (
        Recorder(forward, certificate) as proxy,
        pagerduty.EventsApiV2Client(key, base_url=proxy.url, verify=trusting) as client,
    ):
        for number in range(SENT):
            client.trigger("Ping fails", "db-1.example.com", dedup_key=f"db-{number}/ping")


def notify(address: str, key: str, directory: Path) -> None:
    """An Alertmanager, a message for each rule; it goes on until all that it was given is stored."""
    receiver = {
        "name": "dossier",
        "webhook_configs": [{"url": f"{address}/integrations/alertmanager/{key}"}],
    }
    with alertmanager(directory, [receiver]) as other:
        alerts = [{"labels": {"alertname": f"Rule{number}"}} for number in range(SENT)]
        body = json.dumps(alerts).encode()
        told = urllib.request.Request(f"{other}/api/v2/alerts", body, {"Content-Type": "application/json"})
        urllib.request.urlopen(told, timeout=20).close()
        wait_for(lambda: stored().get("alertmanager") == SENT, 60, "all alerts")
    connection.close()  # of this thread
