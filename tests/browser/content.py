"""Contents of the browser tests: incidents made by real commands, findings judged by the real analyzer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from functools import cache
from hashlib import sha256
from typing import Any
from urllib.request import Request, urlopen
from uuid import uuid4

import numpy as np
from django.db import connection, transaction
from playwright.sync_api import Page, Route

from analyzers import registry, runner
from analyzers.contract import Sums
from analyzers.runs import execution
from analyzers.runs.models import Run, State, StoredVerdict, StoredWindow
from analyzers.simulators import deepview, fleet
from analyzers.simulators.tables import paths_of
from incidents import commands, follower, queries
from incidents.commands import Report
from incidents.domain.status_pages import Publish
from incidents.incident.models import IncidentRow
from incidents.status_pages import commands as status_pages
from incidents.status_pages.models import StatusPage
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.commands import append
from ingest.integrations.normalized import Alert, Parsed
from ingest.log.types import rfc3339
from ingest.queries import Context, Head, NewEvent, dump_sums
from tests.following import follow_to_the_end

ALICE, BOB = Context("user:alice"), Context("user:bob")
SENDER = Context("key:monitoring")


def open_ticket(title: str, **fields: Any) -> int:
    """The number of a new incident."""
    return commands.open_incident(Report(title, **fields), SENDER).incident.number


def post_ticket(address: str, **fields: Any) -> int:
    """The number of an incident that a sender opened at the incident API."""
    key = keys.create(f"sender {uuid4()}", ["incidents:write"])
    headers = {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}
    request = Request(f"{address}/api/v1/incidents", json.dumps(fields).encode(), headers)
    with urlopen(request, timeout=10) as response:
        return int(json.load(response)["number"])


def publish_notices() -> tuple[str, str]:
    """The slug of a public status page with a current, a planned and a past notice, and the id of the current one."""
    services = [
        {"key": "volumes", "name": "Block storage", "group": "Storage", "covers": ["disk/*"]},
        {"key": "network", "name": "Network", "group": "", "covers": ["tor/*"]},
    ]
    slug = f"page-{uuid4().hex[:8]}"
    StatusPage.objects.create(slug=slug, name="Example Cloud", public=True, services=services)
    over = Publish("resolved", "It is over.", {}, title="Slow volumes")
    planned = Publish("scheduled", "On Sunday.", {"network": "maintenance"}, "maintenance", "New switches")
    now = Publish(
        "identified", "See https://example.com.", {"volumes": "partial_outage"}, title="Volumes fail"
    )
    notices = [status_pages.open_notice(slug, one, ALICE) for one in (over, planned, now)]
    return slug, notices[-1].id


def ticket_id(number: int) -> str:
    return queries.get(str(number)).incident.id


@cache
def verdict() -> dict[str, Any]:
    """Deepview's verdict on a simulated hour in which a storage cluster stops."""
    rng = np.random.default_rng(7)
    region = fleet.build(fleet.M, rng)
    component = next(name for name in region.paths.names if name.startswith("storage_cluster/"))
    hours = 6 * 60.0
    fault = deepview.Fault(component, severity=0.5, start=hours - 40, end=hours)
    failures = deepview.background(region, rng, deepview.INDEPENDENT, 0, hours)
    failures = failures.plus(deepview.strike(region, rng, fault))
    return runner.judge(registry.get("deepview"), deepview.with_history(region, failures, hours, past=4))


STORIES = {
    "ToR reboots": (deepview.Fault("tor/d1-c1-t4", 0.95, 340, 343, "stop"),),
    "storage is gray": (deepview.Fault("storage_cluster/d1-s1", 0.03, 315, 360),),
    "two at once": (
        deepview.Fault("compute_cluster/d1-c3", 0.30, 335, 360),
        deepview.Fault("storage_cluster/d1-s3", 0.12, 335, 360),
    ),
}
"""The demo's, in a region of one data centre."""


@cache
def told(story: str) -> dict[str, Any]:
    """Deepview's verdict on the hour in which a story of the demo happens."""
    rng = np.random.default_rng(7)
    region = fleet.build(fleet.S, rng)
    failures = deepview.background(region, rng, deepview.INDEPENDENT, 0, 360)
    failures = failures.plus(*(deepview.strike(region, rng, fault) for fault in STORIES[story]))
    return runner.judge(registry.get("deepview"), deepview.with_history(region, failures, 360, past=4))


def report_finding() -> int:
    """Record a run that names a component, let the reactor act on it; the number of the incident it opened."""
    return report(verdict())[0]


def report(judged: dict[str, Any]) -> list[int]:
    """Record a run with that verdict, let the reactor act on it; the numbers of the incidents of its findings.

    The region is new each time, so that no other test's incident takes the finding.
    """
    now = datetime.now(UTC)
    judged = {**judged, "suspects": [as_of(now, one, judged["window"]["end"]) for one in judged["suspects"]]}
    body = runner.verdict_json(judged)
    run = Run(
        requested_by="system:scheduler",
        analyzer=judged["analyzer"],
        version=judged["version"],
        region=f"region-{uuid4().hex[:8]}",
        params=judged["params"],
        input="placement",
        window_start=now - timedelta(hours=1),
        window_end=now,
        state=State.DONE,
        status=judged["status"],
        blamed=[{"component": one["component"], "score": one["score"]} for one in judged["suspects"]],
        seconds=judged["measures"]["seconds"],
        created_at=now,
        finished_at=now,
        verdict_hash=sha256(body).hexdigest(),
    )
    with transaction.atomic():
        run.save(force_insert=True)
        StoredVerdict.objects.get_or_create(hash=run.verdict_hash, defaults={"body": body})
        recorded = execution.recorded_body(run, judged, "placement", "", [], run.verdict_hash)
        said = [("analysis.recorded", recorded)]
        said += [("finding.reported", finding) for finding in execution.finding_bodies(run, judged, "")]
        append(
            run.stream, [NewEvent(name, body, now) for name, body in said], Head.NEW, Context("system:runs")
        )
    follow_to_the_end(follower.follower())
    return [placed.number for placed in queries.placed_findings(str(run.id))]


def as_of(now: datetime, suspect: dict[str, Any], end: str) -> dict[str, Any]:
    """The suspect of a simulated window, its failures as long before `now` as they were before the window ended."""
    later = now - datetime.fromisoformat(end)
    moments = {name: suspect[name] for name in ("first_failure", "last_failure") if suspect.get(name)}
    return {
        **suspect,
        **{name: rfc3339(datetime.fromisoformat(at) + later) for name, at in moments.items()},
    }


OTHER = "link/spine-12~tor-dc1-t113"


def opinions_on(number: int) -> None:
    """Let three more analyzers speak about an incident: one agrees, one blames another, one saw nothing."""
    cause = str(queries.get(str(number)).incident.component)
    said_by(number, {"voting": cause, "netbouncer": OTHER, "pingmesh": None}, pieces=1)


def said_by(number: int, opinions: Mapping[str, str | None], pieces: int) -> None:
    """Let each analyzer name a component in the incident's region, with so many pieces of evidence where it agrees."""
    incident, end = queries.get(str(number)).incident, datetime.now(UTC)
    cause = str(incident.component)
    kept = dump_sums({"paths": Sums({"hops": paths_of([(cause, OTHER)])}, {}, 1)})
    digest = sha256(kept).hexdigest()
    StoredWindow.objects.get_or_create(hash=digest, defaults={"body": kept})
    for analyzer, named in opinions.items():
        suspects = [] if named is None else [{**verdict()["suspects"][0], "component": named, "score": 0.87}]
        head = {
            "run": str(uuid4()),
            "schedule": f"{analyzer}-5m@simulated",
            "analyzer": analyzer,
            "version": "1.0.0",
            "params": {},
            "region": incident.region,
            "window": {"start": rfc3339(end - timedelta(hours=1)), "end": rfc3339(end)},
            "window_hash": digest,
        }
        said = [
            ("analysis.recorded", {**head, "status": "named" if named else "quiet", "suspects": suspects})
        ]
        if named == cause:
            said += [
                (
                    "finding.reported",
                    {**head, "suspect": suspects[0], "evidence": verdict()["evidence"][:pieces]},
                )
            ]
        new = [NewEvent(name, body, end) for name, body in said]
        append(f"run/{head['run']}", new, Head.NEW, Context("system:runs"))
    follow_to_the_end(follower.follower())


def storm_on(number: int, count: int = 40) -> None:
    """Alerts of three rules on the component that an incident is about, with links, labels and annotations."""
    component = queries.get(str(number)).incident.component
    rules = ("VolumesStopped", "DiskLatencyHigh", "GuestsUnreachable")
    alerts = tuple(
        Alert(
            f"{component} {uuid4()}",
            "firing",
            f"{rules[place % 3]}: 66 % of the virtual disks of {component} did not answer for five minutes",
            severity="error",
            group=rules[place % 3],
            component=component,
            description="Reads take longer than 50 ms.",
            labels={
                "alertname": rules[place % 3],
                "guest": f"vm-{place}",
                "cluster": "prod-1",
                "tier": "gold",
            },
            links=({"href": f"https://runbooks.example/{rules[place % 3]}", "text": "Runbook"},),
        )
        for place in range(count)
    )
    for first in range(0, count, 10):  # several lines of the timeline
        some = Parsed(alerts[first : first + 10])
        receive(some, Delivery("prometheus-dc1", "alertmanager-api", "application/json", b'{"a": 1}'))
        follow_to_the_end(follower.follower())


def without_updates(page: Page) -> None:
    """Load the page again, so that it learns nothing of what others do meanwhile. Its folded blocks come all the
    same, after every answer."""

    def refuse(route: Route) -> None:
        asked = route.request
        if asked.resource_type == "fetch" and asked.method == "GET" and not asked.url.endswith("/details"):
            route.abort()
        else:
            route.continue_()

    page.route("**/*", refuse)
    page.reload()


def fill_inbox(count: int) -> None:
    """Copy one incident's row so often: what the inbox reads, without the minutes of as many commands."""
    number = open_ticket("Disk of a storage node is slow", component="disk/d0", severity="warning")
    columns = [str(field.column) for field in IncidentRow._meta.concrete_fields]
    changed = {
        "id": "gen_random_uuid()",
        "number": f"{10_000_000} + n",
        "dedup_key": "'copy ' || n",
        "component": "'disk/d' || n",
        "title": "'Disk d' || n || ' of a storage node is slow'",
        "severity_rank": "2",
    }
    chosen = ", ".join(changed.get(name, f'"{name}"') for name in columns)
    names = ", ".join(f'"{name}"' for name in columns)
    with connection.cursor() as cursor:
        cursor.execute(
            f"INSERT INTO incident ({names}) SELECT {chosen} FROM incident, generate_series(1, {count}) AS n"
            f" WHERE number = {number}"
        )
        cursor.execute("ANALYZE incident")


def empty_inbox_again() -> None:
    """Take away what `fill_inbox` copied: no events tell of it."""
    IncidentRow.objects.filter(dedup_key__startswith="copy ").delete()
