"""Followers brought to the end of the log, whatever else writes in the cluster."""

from __future__ import annotations

import time

from django.db import connection

from ingest.commands import Follower, run_follower_once
from ingest.queries import follower_places

PATIENCE = 60.0  # seconds


def follow_to_the_end(follower: Follower) -> None:
    """Run it until it has passed every event that is in the log now.

    One pass is not enough: a transaction anywhere in the cluster, as autovacuum's or another test's, holds
    the watermark back for a moment, and a follower sees nothing above it.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT epoch, txid::text AS txid_text, seq FROM log_event ORDER BY epoch DESC, txid DESC, seq DESC LIMIT 1"
        )
        end = cursor.fetchone()
    if end is None:
        return
    last, deadline = (end[0], int(end[1]), end[2]), time.monotonic() + PATIENCE
    while True:
        run_follower_once(follower)
        place = next((place for place in follower_places() if place.name == follower.name), None)
        assert place is not None
        assert place.error is None, place.error
        at = place.position
        if (at.epoch, at.txid, at.seq) >= last:
            return
        assert time.monotonic() < deadline, f"{follower.name} stands at {at}, the log ends at {last}"
        time.sleep(0.005)
