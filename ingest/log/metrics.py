"""What the log tells Prometheus."""

from __future__ import annotations

from functools import cache

from prometheus_client import Counter

APPENDED = Counter("dossier_log_appended_events", "Events appended and committed by this process", ["type"])
appended = cache(APPENDED.labels)
HANDLED = Counter("dossier_log_handled_events", "Events handled by followers in this process", ["follower"])
FAILED = Counter("dossier_log_follower_failures", "Failed runs of followers in this process", ["follower"])
