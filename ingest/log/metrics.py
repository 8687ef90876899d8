"""What the log tells Prometheus."""

from __future__ import annotations

import math
from functools import cache

from django.db import DatabaseError, InterfaceError
from prometheus_client import Counter, Gauge

APPENDED = Counter("dossier_log_appended_events", "Events appended and committed by this process", ["type"])
appended = cache(APPENDED.labels)
HANDLED = Counter("dossier_log_handled_events", "Events handled by followers in this process", ["follower"])
FAILED = Counter("dossier_log_follower_failures", "Failed runs of followers in this process", ["follower"])
WATERMARK_AGE = Gauge(
    "dossier_log_watermark_age_seconds",
    "How long the oldest open writing transaction has kept readers of the log from newer events",
)


def _watermark_age() -> float:
    from ingest.log.store import watermark_age

    try:
        return watermark_age()
    except (DatabaseError, InterfaceError):
        return math.nan  # the page of metrics must be readable while the database is not


WATERMARK_AGE.set_function(_watermark_age)
