"""Suggested teams, where a route says to follow them: in a thread of its own, because learning takes seconds."""

from __future__ import annotations

import threading
from typing import Final

from django.db import connection

from incidents import heeding
from incidents.delivery.sweeps import sweep_once
from ingest.queries import now_utc

EVERY: Final = 1.0
"""Seconds between looks when nothing was due: whoever is called first should be of the right team."""


def run(stop: threading.Event) -> None:
    """Until `stop` is set; finishes the ticket at hand."""
    while not stop.is_set():
        stop.wait(0.0 if sweep_once("suggested teams", heeding.heed_due, now_utc()) else EVERY)
    connection.close()
