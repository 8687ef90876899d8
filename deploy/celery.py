"""The Celery application.

Tasks carry batches and ids, never rows; the broker holds nothing that cannot be lost.
"""

import os

from celery import Celery

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.settings")
app = Celery("dossier")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks(
    [
        *("ingest.telemetry", "ingest.log", "ingest.alerts", "analyzers.runs"),
        *("incidents.oncall", "incidents.reports", "incidents.scorecards"),
    ]
)
