"""Flapping: an alert that fires again and again keeps its incident open until it is quiet. Pure.

Firings within an hour are counted where alerts arrive (`ingest.alerts.decide.FLAP_WINDOW`),
`incidents.alerts.correlate` records which alerts flap, and
`incidents.timers` resolves incidents that have become quiet.
"""

from __future__ import annotations

from datetime import timedelta
from typing import Final

FIRINGS: Final = 5
"""Least firings of an alert within `SPAN` that are flapping."""
SPAN: Final = timedelta(hours=1)
QUIET: Final = timedelta(minutes=15)
"""Time without a firing after which an incident with flapping alerts is resolved."""


def is_flapping(fired: int) -> bool:
    """Whether an alert with this number of firings within an hour is flapping."""
    return fired >= FIRINGS
