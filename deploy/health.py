"""`/healthz` (the process answers), `/readyz` (all that it needs answers), `/metrics` (for Prometheus)."""

from __future__ import annotations

import hmac
from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from redis.exceptions import RedisError

from deploy import broker, metrics
from deploy.version import VERSION
from incidents.delivery.queries import LONGEST_SILENCE, overdue, silences
from ingest.queries import follower_lags

LONGEST_LAG = 60.0  # seconds that a follower may be behind before tickets count as late


@csrf_exempt
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """This process answers; says nothing about what it depends on, so that a restart is not the answer to
    that."""
    return JsonResponse({"status": "alive", "version": VERSION})


@csrf_exempt
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """200 when requests can be served and tickets follow; 503 with the reasons otherwise."""
    reasons = [reason for check in (database, migrations, queue, followers, delivery) if (reason := check())]
    return JsonResponse({"ready": not reasons, "reasons": reasons}, status=503 if reasons else 200)


@csrf_exempt
@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Prometheus text. Asks for METRICS_TOKEN where it is set, and otherwise answers this machine only."""
    if not _may_scrape(request):
        return HttpResponse(
            "metrics need the bearer token in METRICS_TOKEN\n", status=403, content_type="text/plain"
        )
    return HttpResponse(generate_latest(metrics.Everything()), content_type=CONTENT_TYPE_LATEST)


def database() -> str | None:
    def probe() -> str | None:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return None

    return _or_away(probe, "database: does not answer")


def migrations() -> str | None:
    return _or_away(
        lambda: None if _migrated() else "database: migrations are missing (manage.py migrate)", None
    )


def queue() -> str | None:
    try:
        broker.ping()
    except RedisError:
        return "broker: does not answer"
    return None


def followers() -> str | None:
    def probe() -> str | None:
        late = {name: lag for name, lag in follower_lags().items() if lag > LONGEST_LAG}
        behind = ", ".join(f"{name} {lag:.0f} s" for name, lag in late.items())
        return f"followers: behind ({behind})" if late else None

    return _or_away(probe, None)


def delivery() -> str | None:
    def probe() -> str | None:
        longest = LONGEST_SILENCE.total_seconds()
        late = {name: s for name, s in silences().items() if s > longest}
        if (waits := overdue()) > longest:
            late["a message"] = waits
        silent = ", ".join(f"{name} {s:.0f} s" for name, s in late.items())
        return f"delivery: behind ({silent}); is `manage.py deliver` running?" if late else None

    return _or_away(probe, None)


def _or_away(probe: Callable[[], str | None], away: str | None) -> str | None:
    """What `probe` says, or `away` when the database is (None where another check says so already)."""
    try:
        return probe()
    except (DatabaseError, InterfaceError):
        return away


def _migrated() -> bool:
    executor = MigrationExecutor(connection)
    return not executor.migration_plan(executor.loader.graph.leaf_nodes())


def _may_scrape(request: HttpRequest) -> bool:
    if settings.METRICS_TOKEN:
        given = request.headers.get("Authorization", "")
        return hmac.compare_digest(given.encode(), f"Bearer {settings.METRICS_TOKEN}".encode())
    passed_on = "X-Forwarded-For" in request.headers or "Forwarded" in request.headers
    return not passed_on and request.META.get("REMOTE_ADDR", "") in ("127.0.0.1", "::1", "")


urlpatterns = [
    path("healthz", healthz, name="healthz"),
    path("readyz", readyz, name="readyz"),
    path("metrics", metrics_page, name="metrics"),
]
