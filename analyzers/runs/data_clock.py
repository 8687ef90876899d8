"""Telemetry arrived: move the feeds, and look at once what is due instead of at the next tick.

The follower hands over whole batches, so that a thousand small bodies cost one look. The look comes after
the commit: a follower's transaction is to be short, and a look that is lost is made up by the tick.
"""

from __future__ import annotations

from django.db import transaction

from analyzers.runs import feeds
from analyzers.runs.models import Schedule
from analyzers.runs.scheduler import claim_due, send
from ingest.commands import Follower, register_follower, run_follower_once
from ingest.queries import Event, now_utc


def arrived(events: list[Event]) -> None:
    feeds.move(events)
    transaction.on_commit(look, robust=True)


def look() -> None:
    """Queue what is due by arrival and tell workers."""
    if claim_due(Schedule.objects.filter(enabled=True, by_arrival=True), now_utc()):
        send()


ARRIVALS = register_follower(Follower("runs.arrivals", frozenset({"telemetry.received"}), arrived))


def catch_up() -> None:
    """Move the feeds to the log's end now, unless another process is at it."""
    while run_follower_once(ARRIVALS):
        pass
