"""Writes `tests/golden/payloads` anew: what real senders send. Nothing is changed in it."""

from __future__ import annotations

import json
import ssl
import subprocess
import tempfile
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pagerduty

from tests.places import PAYLOADS
from tests.senders.checkers import Watched, icinga, nagios
from tests.senders.daemons import AMTOOL, alertmanager, prometheus
from tests.senders.libraries import (
    export_error,
    export_metrics,
    export_span,
    post_event,
    writing_prometheus,
)
from tests.senders.recording import Recorded, Recorder, throw_away_certificate
from tests.senders.zabbix import zabbix

KEY = "r0123456789abcdef0123456789abcde"


def firing_until(end: float) -> list[dict[str, Any]]:
    """Two rules whose alerts resolve at a time, seconds since 1970."""
    place = 'label_replace(vector(time()) < {end:.0f}, "instance", "{instance}", "", "")'
    annotations = {
        "summary": "Disk of {{ $labels.instance }} is almost full",
        "description": "98 % of /var is used on {{ $labels.instance }}.\nIt fills in 2 h: “soon”.",
        "runbook_url": "https://runbooks.example.com/disk?host={{ $labels.instance }}",
    }
    return [
        {
            "alert": "DiskAlmostFull",
            "expr": " or ".join(place.format(end=end, instance=name) for name in ("db-1:9100", "db-2:9100")),
            "labels": {"severity": "critical", "team": "storage", "job": "node"},
            "annotations": annotations,
        },
        {"alert": "Watchdog", "expr": "vector(1)", "labels": {"severity": "none"}},
    ]


def record_prometheus(directory: Path) -> None:
    with Recorder() as endpoint:
        # Prometheus looks for its Alertmanagers 5 s after it started.
        rules = firing_until(time.time() + 12)
        with prometheus(
            directory, rules, [{"static_configs": [{"targets": [f"127.0.0.1:{endpoint.port}"]}]}]
        ):
            # A firing alert is said to end 20 s later, four times the delay of repeats.
            keep("prometheus/firing.json", endpoint.wait_for(lambda request: disks_fired(request) > 15))
            keep("prometheus/resolved.json", endpoint.wait_for(lambda request: 0 < disks_fired(request) < 15))


def disks_fired(request: Recorded) -> float:
    """Seconds from start to end of the alerts of disks in a body; 0 without any."""
    for alert in json.loads(request.body):
        if alert["labels"]["alertname"] == "DiskAlmostFull":
            starts, ends = (datetime.fromisoformat(alert[field]) for field in ("startsAt", "endsAt"))
            return (ends - starts).total_seconds()
    return 0


def record_alertmanager(directory: Path) -> None:
    with Recorder(answer=lambda request: (202 if "enqueue" in request.path else 200, b"{}")) as endpoint:
        receivers = [
            {"name": "all", "webhook_configs": [{"url": f"{endpoint.url}/all", "send_resolved": True}]},
            {"name": "short", "webhook_configs": [{"url": f"{endpoint.url}/short", "max_alerts": 1}]},
            {
                "name": "pagerduty",
                "pagerduty_configs": [
                    {"routing_key": KEY, "url": f"{endpoint.url}/v2/enqueue", "severity": "critical"}
                ],
            },
        ]
        with alertmanager(directory, receivers) as address:
            end = time.time() + 8
            target = {"static_configs": [{"targets": [address.removeprefix("http://")]}]}
            with prometheus(directory, firing_until(end), [target]):
                for name, path, status in (
                    ("webhook-firing", "/all", "firing"),
                    ("webhook-truncated", "/short", "firing"),
                    ("webhook-resolved", "/all", "resolved"),
                    ("pagerduty-trigger", "/v2/enqueue", "trigger"),
                    ("pagerduty-resolve", "/v2/enqueue", "resolve"),
                ):
                    keep(f"alertmanager/{name}.json", endpoint.wait_for(_about_disks(path, status)))


def _about_disks(path: str, status: str) -> Callable[[Recorded], bool]:
    field = "event_action" if "enqueue" in path else "status"

    def wanted(request: Recorded) -> bool:
        return (
            request.path == path
            and b"DiskAlmostFull" in request.body
            and json.loads(request.body)[field] == status
        )

    return wanted


def record_amtool(_: Path) -> None:
    with Recorder() as endpoint:
        told = [
            "alertname=Drill",
            "severity=warning",
            "service=check out",
            "--annotation=summary=Only a drill",
        ]
        link = "--generator-url=https://wiki.example.com/drill"
        command = [AMTOOL, f"--alertmanager.url={endpoint.url}", "alert", "add", *told, link]
        subprocess.run(command, check=True, capture_output=True)
        keep("alertmanager/amtool.json", endpoint.wait_for(lambda request: request.path == "/api/v2/alerts"))


def record_pagerduty(directory: Path) -> None:
    certificate = throw_away_certificate(directory)

    def answer(request: Recorded) -> tuple[int, bytes]:
        told = json.loads(request.body)
        return 202, json.dumps(
            {"status": "success", "dedup_key": told.get("dedup_key", "made-here")}
        ).encode()

    with Recorder(answer, certificate) as endpoint:
        trusting = ssl.create_default_context(cafile=str(certificate[0]))
        with pagerduty.EventsApiV2Client(KEY, base_url=endpoint.url, verify=trusting) as client:
            client.trigger(
                "Ping of db-1 fails",
                "db-1.example.com",
                dedup_key="db-1/ping",
                severity="error",
                payload={"class": "ping failure", "group": "databases", "component": "nic/db-1-0"},
                custom_details={"lost": 0.8, "probes": [{"from": "mon-1", "lost": 8}], "rack": "r7"},
                links=[{"href": "https://graphs.example.com/db-1", "text": "Graph"}],
                images=[
                    {
                        "src": "https://graphs.example.com/db-1.png",
                        "href": "https://graphs.example.com",
                        "alt": "Loss",
                    }
                ],
            )
            client.trigger("Without a key", "db-2.example.com")
            client.acknowledge("db-1/ping")
            client.resolve("db-1/ping")
            # Version 7.2.0 fails when it is to make the time itself.
            client.submit(
                "Deploy 7 of shop",
                "ci.example.com",
                {"build": 7},
                [{"href": "https://ci.example.com/7", "text": "7"}],
                datetime.now(UTC).isoformat(),
            )
        names = ("trigger", "trigger-without-key", "acknowledge", "resolve", "change")
        for name, request in zip(names, endpoint.requests, strict=True):
            keep(f"pagerduty/{name}.json", request)


def record_checker(
    start: Callable[[Path, str], AbstractContextManager[Watched]], name: str, directory: Path
) -> None:
    with Recorder() as endpoint, start(directory, f"{endpoint.url}/integrations/generic/KEY") as watched:
        watched.say(
            "db-1-disk",
            2,
            'DISK CRITICAL - 98% of "/var" \\ used, äöü; soon $5 & <full>|/var=98%\nSecond line',
        )
        firing = endpoint.wait_for(lambda request: b"type=PROBLEM" in request.body)
        keep(f"{name}/service-problem.form", firing)
        watched.acknowledge("db-1", "disk /var", "alice", 'Alice: "looking" at it')
        keep(
            f"{name}/service-acknowledgement.form",
            endpoint.wait_for(lambda request: b"type=ACKN" in request.body),
        )
        watched.say("db-1-disk", 0, "DISK OK")
        keep(
            f"{name}/service-recovery.form",
            endpoint.wait_for(lambda request: b"type=RECOVERY" in request.body),
        )
        mark = len(endpoint.requests)
        watched.say("db-1", 2, "PING CRITICAL - 100% lost")
        keep(
            f"{name}/host-problem.form",
            endpoint.wait_for(lambda r: b"type=PROBLEM" in r.body and r in endpoint.requests[mark:]),
        )
        watched.say("db-1", 0, "PING OK")
        keep(
            f"{name}/host-recovery.form",
            endpoint.wait_for(lambda r: b"type=RECOVERY" in r.body and r in endpoint.requests[mark:]),
        )


def record_zabbix(directory: Path) -> None:
    with Recorder() as endpoint, zabbix(directory, f"{endpoint.url}/integrations/generic/KEY") as server:
        server.send(98)
        keep("zabbix/problem.json", endpoint.wait_for(lambda request: b'"firing"' in request.body))
        server.acknowledge("Alice looks at it")
        keep(
            "zabbix/acknowledgement.json",
            endpoint.wait_for(lambda request: b'"acknowledged"}' in request.body),
        )
        server.send(10)
        keep("zabbix/recovery.json", endpoint.wait_for(lambda request: b'"resolved"' in request.body))


def record_cloudevents(_: Path) -> None:
    with Recorder(lambda _: (200, b"{}")) as endpoint:
        at = datetime.now(UTC)
        post_event(f"{endpoint.url}/structured", "firing", at)
        post_event(f"{endpoint.url}/binary", "resolved", at + timedelta(minutes=5), mode="binary")
        for request in endpoint.requests:
            name = request.path.removeprefix("/")
            keep(f"cloudevents/{name}.json", request)
            # In binary mode the attributes of the event are headers.
            told = {
                key: value
                for key, value in request.headers.items()
                if key.lower().startswith(("ce-", "content-t"))
            }
            (PAYLOADS / f"cloudevents/{name}.headers.json").write_text(json.dumps(told, indent=1) + "\n")


def record_opentelemetry(_: Path) -> None:
    with Recorder(lambda _: (200, b"")) as endpoint:
        export_metrics(endpoint.url, KEY)
        export_span(endpoint.url, KEY)
        export_error(endpoint.url, KEY, "no space on disk 7")
        for name in ("metrics", "traces", "logs"):
            keep(
                f"opentelemetry/{name}.pb",
                endpoint.wait_for(lambda request, name=name: request.path == f"/v1/{name}"),  # type: ignore[misc]
            )


def record_remote_write(directory: Path) -> None:
    with Recorder(lambda _: (204, b"")) as endpoint, writing_prometheus(directory, endpoint.url, KEY):
        keep(
            "prometheus/remote-write.snappy",
            endpoint.wait_for(lambda request: request.path == "/api/v1/write"),
        )


def keep(name: str, request: Recorded) -> None:
    path = PAYLOADS / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(request.body)
    kind = {header.lower(): value for header, value in request.headers.items()}
    print(f"{name}: {request.method} {request.path}, {kind.get('content-type')}, {kind.get('user-agent')}")


def main() -> None:
    checkers = (partial(record_checker, nagios, "nagios"), partial(record_checker, icinga, "icinga"))
    for record in (
        record_prometheus,
        record_alertmanager,
        record_amtool,
        record_pagerduty,
        *checkers,
        record_zabbix,
        record_cloudevents,
        record_opentelemetry,
        record_remote_write,
    ):
        with tempfile.TemporaryDirectory() as directory:
            record(Path(directory))


if __name__ == "__main__":
    main()
