"""The Celery application.

Tasks carry batches and ids, never rows; the broker holds nothing that cannot be lost.
"""

import ctypes
import os
import sys
from contextlib import suppress
from typing import Any

from celery import Celery
from celery.signals import task_postrun, worker_init, worker_process_init
from django.conf import settings

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
# Arrow's own allocator keeps in each thread what that once needed; the C library gives it back (`give_back`).
os.environ.setdefault("ARROW_DEFAULT_MEMORY_POOL", "system")
LARGE = frozenset({"runs.execute", "runs.maintain"})
"""Tasks that need a hundred megabytes and more for a moment: a window, rows on their way into files."""
app = Celery("dossier")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        *("ingest.telemetry", "ingest.log", "ingest.alerts", "analyzers.runs"),
        *("incidents.oncall", "incidents.reports", "incidents.scorecards"),
    ]
)
app.steps["consumer"].add("deploy.observability.heartbeats:Consuming")


@worker_init.connect
def _begin_worker(**_: Any) -> None:
    from deploy.observability.heartbeats import begin_worker

    begin_worker()


@worker_process_init.connect
def _begin_pool_process(**_: Any) -> None:
    from deploy.observability.heartbeats import begin_pool_process

    begin_pool_process()
    if settings.TELEMETRY_COLD:
        import pyarrow as pa

        pa.set_cpu_count(1)  # moves are not urgent, and each further thread keeps memory


@task_postrun.connect
def _end_task(sender: Any = None, **_: Any) -> None:
    from deploy.observability.heartbeats import note_task

    note_task()
    if sender is not None and sender.name in LARGE:
        give_back()


def give_back() -> None:
    """Return freed memory to the system, where the C library can (glibc). Takes milliseconds.

    The C library and Arrow keep it for the next time, which may be an hour away: after a move of old telemetry a
    process held 40 MB that nothing was in.
    """
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
