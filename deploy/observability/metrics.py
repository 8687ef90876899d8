"""Metrics of `/metrics`: counters that each process keeps, and figures that are read at their source.

Under the supervisor the counters of all processes meet in files (PROMETHEUS_MULTIPROC_DIR), so that it does
not matter which web process answers. What the database or the broker knows is asked at the time of the
scrape; when one of them is away, its figures are missing and `dossier_database_up` or `dossier_broker_up`
says so.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime
from functools import cache

from django.conf import settings
from django.db import DatabaseError, InterfaceError
from django.db.models import Count, Min
from django.http import HttpRequest, HttpResponseBase
from prometheus_client import REGISTRY, CollectorRegistry, Counter, Histogram, Metric
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from redis.exceptions import RedisError

from analyzers.queries import Run, analyzers, faulty_analyzers
from deploy import broker, processes
from deploy.version import VERSION
from incidents.escalation.queries import overdue as overdue_escalations
from incidents.notifications.queries import overdue, silences
from incidents.oncall.queries import uncovered
from incidents.queries import counts, unanswered
from ingest.db import disk
from ingest.queries import (
    TELEMETRY_KINDS,
    clock_skew,
    cold_log,
    cold_telemetry,
    follower_lags,
    now_utc,
    watermark_age,
)

REQUESTS = Counter("dossier_requests", "Requests answered", ["view", "method", "status"])
SECONDS = Histogram("dossier_request_seconds", "Time from request to response", ["view", "method"])

READS_REFUSED = Counter("dossier_reads_rejected", "Reads rejected to reserve threads for senders")
BODIES = Counter("dossier_telemetry_bodies", "Telemetry requests by kind and status", ["kind", "status"])
ROWS = Counter(
    "dossier_telemetry_rows", "Telemetry rows acknowledged, repeated deliveries included", ["kind"]
)

_requests, _seconds = (
    cache(REQUESTS.labels),
    cache(SECONDS.labels),
)  # of few labels, and found for every request
_bodies, _rows = cache(BODIES.labels), cache(ROWS.labels)

Read = Callable[[], Iterator[Metric]]


def observe(request: HttpRequest, response: HttpResponseBase, seconds: float) -> None:
    """Count a request under the route that it took (never under its path: those are without number)."""
    view = request.resolver_match.route if request.resolver_match else "unmatched"
    method = request.method or "?"
    _requests(view, method, str(response.status_code)).inc()
    _seconds(view, method).observe(seconds)
    if request.resolver_match and request.resolver_match.url_name == "telemetry" and method == "POST":
        _observe_telemetry(request.resolver_match.kwargs["kind"], response)


def _observe_telemetry(kind: str, response: HttpResponseBase) -> None:
    known = kind if kind in TELEMETRY_KINDS else "unknown"
    _bodies(known, str(response.status_code)).inc()
    if response.status_code == 202:
        _rows(known).inc(getattr(response, "accepted", 0))


class Everything(Collector):
    """The counters of all processes, then the figures of database and broker."""

    def collect(self) -> Iterable[Metric]:
        known = [*_from("database", from_database), *_from("broker", from_broker), *from_machine()]
        names = {metric.name for metric in known}
        yield from known
        yield from (metric for metric in _processes().collect() if metric.name not in names)


def _processes() -> CollectorRegistry:
    if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
        return REGISTRY
    registry = CollectorRegistry()
    MultiProcessCollector(registry)  # type: ignore[no-untyped-call]
    return registry


def _from(part: str, read: Read) -> Iterator[Metric]:
    up = GaugeMetricFamily(f"dossier_{part}_up", f"1 when the {part} answers")
    try:
        yield from list(read())
        up.add_metric([], 1)
    except (DatabaseError, InterfaceError, RedisError):
        up.add_metric([], 0)
    yield up


def from_database() -> Iterator[Metric]:
    yield _build()
    yield _gauge(
        "dossier_log_watermark_age_seconds",
        "Time for which the oldest open write transaction has kept readers of the log from newer events",
        watermark_age(),
    )
    lags = GaugeMetricFamily(
        "dossier_follower_lag_seconds",
        "Age of the oldest event that a follower has not processed",
        labels=["follower"],
    )
    for name, lag in follower_lags().items():
        lags.add_metric([name], lag)
    yield lags
    runs = GaugeMetricFamily("dossier_runs", "Runs by state", labels=["state"])
    for state, count in Run.objects.values_list("state").annotate(Count("pk")).order_by():
        runs.add_metric([state], count)
    yield runs
    yield _gauge(
        "dossier_run_wait_seconds",
        "Waiting time of the oldest queued run",
        _longest_wait(),
    )
    yield _usable()
    incidents = GaugeMetricFamily("dossier_incidents", "Incidents by state", labels=["state"])
    for incident_state, count in counts().items():
        incidents.add_metric([incident_state], count)
    yield incidents
    waiting = GaugeMetricFamily(
        "dossier_incidents_unanswered",
        "Pending hand-overs by sending team",
        labels=["team"],
    )
    for team, number in unanswered().items():
        waiting.add_metric([team], number)
    yield waiting
    late, oldest = overdue_escalations(datetime.now(UTC))
    yield _gauge("dossier_escalations_late", "Escalations that have been due for more than a minute", late)
    yield _gauge("dossier_escalation_overdue_seconds", "Delay of the oldest due escalation", oldest)
    yield _gauge("dossier_delivery_overdue_seconds", "Delay of the oldest due message", overdue())
    silent = GaugeMetricFamily(
        "dossier_delivery_silent_seconds",
        "Time since the last successful round of a part of delivery",
        labels=["part"],
    )
    for part, seconds in silences().items():
        silent.add_metric([part], seconds)
    yield silent
    yield _uncovered()
    yield from _cold()


def _usable() -> Metric:
    usable = GaugeMetricFamily(
        "dossier_analyzer_up",
        "1 for an analyzer that can run, 0 for one that is installed or scheduled and cannot",
        labels=["analyzer"],
    )
    lost = faulty_analyzers()
    for name in sorted({*analyzers(), *lost}):
        usable.add_metric([name], name in analyzers())
    return usable


def _cold() -> Iterator[Metric]:
    cold = cold_telemetry(now_utc())
    yield _gauge("dossier_telemetry_cold_rows", "Telemetry rows in Parquet files", cold.rows)
    yield _gauge("dossier_telemetry_cold_bytes", "Size of the Parquet files", cold.bytes)
    yield _gauge(
        "dossier_telemetry_cold_overdue_seconds",
        "Time for which the oldest telemetry past DOSSIER_TELEMETRY_HOT has not been moved into a file",
        cold.overdue.total_seconds(),
    )
    parts = cold_log()
    yield _gauge("dossier_log_cold_events", "Events of the log in Parquet files", parts.events)
    yield _gauge("dossier_log_cold_bytes", "Size of those files", parts.bytes)
    yield _gauge(
        "dossier_log_cold_overdue_parts",
        "Full parts of the log beyond DOSSIER_LOG_HOT that are not in files yet",
        parts.overdue,
    )


def _longest_wait() -> float:
    since = Run.objects.filter(state="queued").aggregate(oldest=Min("created_at"))["oldest"]
    return 0.0 if since is None else max(0.0, (now_utc() - since).total_seconds())


def _uncovered() -> Metric:
    gaps = GaugeMetricFamily(
        "dossier_oncall_gap_seconds",
        "Uncovered on-call time in the next 14 days, by schedule",
        labels=["schedule"],
    )
    for schedule, span in uncovered(datetime.now(UTC)).items():
        gaps.add_metric([schedule], span.total_seconds())
    return gaps


def from_machine() -> Iterator[Metric]:
    """Processes of this node, its disk and its clock."""
    space = disk.space()
    yield _gauge("dossier_disk_free_bytes", "Free space in the file system of DOSSIER_HOME", space.free)
    yield _gauge("dossier_disk_size_bytes", "Size of the file system of DOSSIER_HOME", space.size)
    if (skew := clock_skew()) is not None:
        yield _gauge("dossier_clock_skew_seconds", "Clock of this machine minus clock of Postgres", skew)
    if (known := processes.read(settings.HOME.root)) is None:
        return
    up = GaugeMetricFamily("dossier_process_up", "1 while a process responds", labels=["process"])
    restarts = CounterMetricFamily(
        "dossier_process_restarts",
        "Unexpected exits of a process since the supervisor started",
        labels=["process"],
    )
    for one in known[0]:
        up.add_metric([one.name], one.state == "running" and known[1] <= processes.SILENT)
        restarts.add_metric([one.name], one.restarts)
    yield up
    yield restarts


def from_broker() -> Iterator[Metric]:
    yield _gauge("dossier_queue_length", "Tasks in the queue", broker.queue_length())


def _build() -> Metric:
    family = GaugeMetricFamily("dossier_build_info", "Running version", labels=["version"])
    family.add_metric([VERSION], 1)
    return family


def _gauge(name: str, documentation: str, value: float) -> Metric:
    return GaugeMetricFamily(name, documentation, value=value)
