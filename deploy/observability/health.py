"""`/healthz` (the process answers), `/readyz` (this node can serve requests), `/metrics` (for Prometheus).

A node that cannot serve is taken out of service by its load balancer. What is late for the whole installation, such as
the lag of a follower, would take out every node at once: it is a warning, a metric and a banner of the console.
"""

from __future__ import annotations

import hmac
import time
from collections.abc import Callable, Collection
from datetime import timedelta
from textwrap import shorten

from django.conf import settings
from django.db import DatabaseError, InterfaceError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.urls import path
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest
from redis.exceptions import RedisError

from analyzers.queries import faulty_analyzers
from deploy import broker, env, privileges, processes
from deploy.accounts import proxy_is_not_counted
from deploy.observability import metrics
from deploy.version import VERSION
from incidents.chat.queries import broken_workspaces, unreadable_workspaces
from incidents.escalation.queries import called_but_unreachable
from incidents.notifications import key
from incidents.notifications.queries import LONGEST_SILENCE, overdue, silences
from incidents.queries import unfinished_rebuild
from incidents.webhooks.queries import lost_deliveries
from incidents.webhooks.queries import unreadable as unreadable_webhooks
from ingest.api.key_problems import key_problems
from ingest.db import disk
from ingest.queries import (
    clock_is_wrong,
    clock_skew,
    cold_log,
    cold_telemetry,
    database_answers,
    empty_log_parts,
    follower_lags,
    now_utc,
    overdue_telemetry,
)

LOOK_EVERY = 15.0
"""Seconds between looks, for the banner of the console, for secrets that cannot be decrypted and for delays."""
LONGEST_TASKS = 900.0
"""Seconds without a task after which workers count as hanging; beat sends one every few seconds, and long ones may take
all processes of a worker for minutes."""
LONGEST_LAG = 60.0  # seconds that a follower may be behind before incidents count as late

NEEDED = ("worker", "scheduler", "followers", "delivery", "mail", "otlp")
"""Processes without which something comes late or not at all."""
COVERED = ("web", "events")
"""Processes whose work others do meanwhile: other web processes, and pages that poll."""
DRAINING = "this node is stopping"
AS_ROOT = "root: pages and analyzers run as root; see DOSSIER_ALLOW_ROOT"


@csrf_exempt
@require_safe
def healthz(_request: HttpRequest) -> HttpResponse:
    """This process answers; says nothing about what it depends on, so that a restart is not the answer to
    that."""
    return JsonResponse({"status": "alive", "version": VERSION})


@csrf_exempt
@require_safe
def readyz(_request: HttpRequest) -> HttpResponse:
    """200 when this node can serve requests; 503 with the reasons otherwise.

    `warnings` lists delays of the installation and what needs attention.
    """
    found = reasons()
    late = [] if DRAINING in found else delays()
    body = {"ready": not found, "reasons": found, "warnings": [*late, *warnings()]}
    return JsonResponse(body, status=503 if found else 200)


def reasons() -> list[str]:
    """Reasons why this node cannot serve requests; empty where it can."""
    if processes.is_draining(settings.HOME.root):
        return [DRAINING]
    return _findings_of(database, disk_full, migrations, secret_key, clocks)


def delays() -> list[str]:
    """Work that is late or stopped although requests are served: analyses, incidents, notifications."""
    return _findings_of(queue, running, *LATENESS)


def _findings_of(*checks: Callable[[], str | None]) -> list[str]:
    return [found for check in checks if (found := check())]


def warnings() -> list[str]:
    """Working parts that need attention."""
    found = [*node_warnings(), *([AS_ROOT] if privileges.is_root() else [])]
    if lost := _lost_analyzers():
        # Names only: anybody may ask for `/readyz`, and a reason may hold paths.
        found.append(f"analyzers: problems of {', '.join(lost)}; manage.py doctor names them")
    return found + [warning for warning in [people_called()] if warning]


def node_warnings() -> list[str]:
    """Warnings of this node alone: its disk and its processes. Asks no database."""
    known, _ = processes.read(settings.HOME.root) or ([], 0.0)
    found = [f"{one.name}: {one.reason or one.state}" for one in known if _is_bad(one, COVERED)]
    return [*([result] if (result := disk.space().warning) else []), *found]


def operator_warnings(request: HttpRequest) -> dict[str, list[str]]:
    """Template context: what the console shows in red on every page of those who are signed in."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {"operator_warnings": []}
    found = [
        disk.space().warning,
        clocks(),
        secrets() if getattr(user, "is_staff", False) else None,
        *_recently("delays", lambda: _findings_of(*LATENESS)),
        analyzers(),
    ]
    return {"operator_warnings": [one for one in found if one]}


def analyzers() -> str | None:
    """Problems of analyzers that are installed or scheduled."""
    lost = [shorten(reason, 300) for reason in _lost_analyzers().values()]
    more = f"; and {len(lost) - 3} more" if len(lost) > 3 else ""
    return f"analyzers with a problem: {'; '.join(lost[:3])}{more}" if lost else None


def _lost_analyzers() -> dict[str, str]:
    try:
        return faulty_analyzers()
    except (DatabaseError, InterfaceError):
        return {}


def secrets() -> str | None:
    """Contact methods, channels, webhooks and chats to which nothing is sent, by name: for staff."""

    def probe() -> str | None:
        lost = _recently_unreadable()
        more = f" and {len(lost) - 5} more" if len(lost) > 5 else ""
        return (
            f"secrets: {', '.join(lost[:5])}{more} cannot be decrypted with this DOSSIER_SECRET_KEY, so nothing is sent"
            " there; restore the key, set DOSSIER_SECRET_KEY_FALLBACKS, or enter them again"
            if lost
            else None
        )

    return _or_away(probe, None)


_looked: dict[str, tuple[float, object, list[str]]] = {}


def _recently(name: str, look: Callable[[], list[str]], upon: object = None) -> list[str]:
    """Result of `look`, cached for LOOK_EVERY seconds while `upon` is the same: every page asks."""
    now, last = time.monotonic(), _looked.get(name)
    if last is None or last[1] != upon or now - last[0] > LOOK_EVERY:
        last = _looked[name] = (now, upon, look())
    return last[2]


def _recently_unreadable() -> list[str]:
    """Secrets that cannot be decrypted; cached, since each address is decrypted for it."""
    return _recently(
        "secrets",
        lambda: [
            *key.unreadable(),
            *(f"webhook {name}" for name in unreadable_webhooks()),
            *(f"chat workspace {name}" for name in unreadable_workspaces()),
        ],
        (settings.SECRET_KEY, *settings.SECRET_KEY_FALLBACKS),
    )


def people_called() -> str | None:
    """Without names: anybody may ask for `/readyz`; `doctor` and Settings name them."""

    def probe() -> str | None:
        lost = len(called_but_unreachable())
        noun = "person" if lost == 1 else "people"
        return f"on call: {lost} {noun} that policies or schedules call cannot be reached" if lost else None

    return _or_away(probe, None)


def clocks() -> str | None:
    """Times are taken from Postgres; what else this machine does by its own clock would still be wrong."""
    if not clock_is_wrong():
        return None
    ahead = clock_skew() or 0.0
    side = "ahead of" if ahead > 0 else "behind"
    return f"clock: this machine is {abs(ahead):.0f} s {side} Postgres; set its clock (NTP)"


def running() -> str | None:
    """Of the processes that the supervisor of this node keeps running."""
    known = processes.read(settings.HOME.root)
    if known is None:
        return None
    found, age = known
    if age > processes.SILENT:
        return f"supervisor: no sign of life for {age:.0f} s"
    bad = ", ".join(f"{one.name} ({one.reason or one.state})" for one in found if _is_bad(one, NEEDED))
    return f"processes: not running: {bad}" if bad else None


@csrf_exempt
@require_safe
def metrics_page(request: HttpRequest) -> HttpResponse:
    """Prometheus text. Asks for DOSSIER_METRICS_TOKEN where it is set, and otherwise answers this machine only."""
    if not _may_scrape(request):
        return HttpResponse(
            "metrics need the bearer token in DOSSIER_METRICS_TOKEN\n", status=403, content_type="text/plain"
        )
    return HttpResponse(generate_latest(metrics.Everything()), content_type=CONTENT_TYPE_LATEST)


MOVED_LATE = timedelta(hours=6)
"""Of telemetry that waits to be moved into files."""


DROPPED_LATE = timedelta(hours=6)
"""Of telemetry past its retention."""
MOST_LISTED = 10
"""Integrations, and webhooks."""


def advice() -> list[str]:
    """Advice for staff although everything answers. Needs the database."""
    found = [f"settings: {line}" for line in env.unread()]
    if lost := analyzers():
        found.append(lost)
    if proxy_is_not_counted():
        found.append(
            "proxy: people sign in through one and DOSSIER_TRUSTED_PROXY_COUNT is 0; set it to the number of "
            "proxies in front, so"
            " that wrong passwords are counted for each address"
        )
    if (waits := cold_telemetry(now_utc()).overdue) > MOVED_LATE:
        found.append(
            f"telemetry: old rows should have moved into files {waits.total_seconds() / 3600:.0f} hours ago"
        )
    if (old := cold_log()).overdue > 1:
        unsealed = f"; no seal covers {old.unsealed} of them" if old.unsealed else ""
        found.append(f"old log: {old.overdue} parts should have moved into files{unsealed}")
    if not empty_log_parts():
        found.append("log: no part is made ahead; each is made when an append finds none")
    if late := {kind: by for kind, by in overdue_telemetry(now_utc()).items() if by > DROPPED_LATE}:
        longest = max(late, key=lambda kind: late[kind])
        found.append(
            f"retention: {longest} should have been dropped {late[longest].total_seconds() / 3600:.0f} hours ago"
            + (f", and {len(late) - 1} more kinds" if len(late) > 1 else "")
        )
    found += [f"integration {one}" for one in key_problems(now_utc())[:MOST_LISTED]]
    found += [f"webhook {one}" for one in lost_deliveries(now_utc())[:MOST_LISTED]]
    if begun := unfinished_rebuild():
        found.append(f"rebuild: begun at {begun:%Y-%m-%d %H:%M} UTC and not finished")
    found += [f"chat workspace {one}" for one in broken_workspaces()]
    if called := called_but_unreachable():
        shown = [f"{name} ({why})" for name, why in list(called.items())[:5]]
        more = f" and {len(called) - 5} more" if len(called) > 5 else ""
        found.append(
            f"on call: no working contact method for {', '.join(shown)}{more}, named by policies or schedules"
        )
    return found


def for_staff(request: HttpRequest) -> dict[str, Callable[[], list[str]]]:
    """Context of templates: `advice`, asked for only where a page shows it."""
    is_staff = bool(getattr(getattr(request, "user", None), "is_staff", False))
    return {"advice": lambda: advice() if is_staff else []}


def database() -> str | None:
    def probe() -> str | None:
        if not database_answers():
            return "database: stands still"
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        return None

    return _or_away(probe, "database: does not answer")


def disk_full() -> str | None:
    return "disk: full; nothing can be stored" if disk.space().full else None


def migrations() -> str | None:
    return _or_away(
        lambda: None if migrated() else "database: migrations are missing (manage.py migrate)", None
    )


def secret_key() -> str | None:
    wrong = "DOSSIER_SECRET_KEY is not the one that secrets in the database are encrypted under"
    return _or_away(lambda: None if key.is_right() else wrong, None)


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
        late = {name: s for name, s in silences().items() if s > longest and name != processes.TASKS}
        if (waits := overdue()) > longest:
            late["a message"] = waits
        silent = ", ".join(f"{name} {s:.0f} s" for name, s in late.items())
        return f"delivery: behind ({silent}); is `manage.py deliver` running?" if late else None

    return _or_away(probe, None)


def tasks() -> str | None:
    """Whether workers do tasks at all: one whose pool hangs consumes and does nothing."""

    def probe() -> str | None:
        silent = silences().get(processes.TASKS, 0.0)
        return f"worker: no task was done for {silent:.0f} s" if silent > LONGEST_TASKS else None

    return _or_away(probe, None)


LATENESS = (followers, delivery, tasks)
"""Asked of the database. The broker is left out: one that hangs would hold up every page."""


def _is_bad(one: processes.Known, kinds: Collection[str]) -> bool:
    return one.name.partition("-")[0] in kinds and one.state in ("silent", "ended")


def _or_away(probe: Callable[[], str | None], away: str | None) -> str | None:
    """Result of `probe`, or `away` when the database is (None where another check says so already)."""
    try:
        return probe()
    except (DatabaseError, InterfaceError):
        return away


def foreign_database() -> str | None:
    """Reason why this version may not use or migrate this database: one of another version made it."""
    loader = MigrationExecutor(connection).loader
    replaced = {key for migration in loader.disk_migrations.values() for key in migration.replaces}
    known = {*loader.disk_migrations, *replaced}
    unknown = sorted(
        f"{app}.{name}"
        for app, name in loader.applied_migrations
        if app in loader.migrated_apps and (app, name) not in known
    )
    if "log.0001_event_log" in unknown:
        return (
            "The database was made by a version before 0.1.0, whose tables have other names. Start with an empty"
            " database: an empty DOSSIER_HOME, or `make demo-reset`."
        )
    if unknown:
        return (
            f"The database was migrated by a newer version: this one does not know {', '.join(unknown)}. Start that"
            " version or a later one; to go back, restore the backup from before the upgrade."
        )
    return None


def migrated() -> bool:
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
