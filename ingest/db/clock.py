"""Time by the clock of Postgres, which all processes of all machines share.

`ingest.db.server_watch` measures by how much the clock of this machine differs. Below TRUSTED the local clock is used
as it is, so that processes of one machine agree to the microsecond; above, the difference is added.
"""

from __future__ import annotations

import os
import time
from collections import deque
from datetime import UTC, datetime, timedelta

TRUSTED = 1.0
"""Seconds of difference that are not corrected: several times what a measurement is wrong by."""
WRONG = 5.0
"""Seconds of difference above which the clock of this machine counts as wrong."""
KEPT = 10
"""Measurements among which the one with the shortest journey counts (as in NTP's clock filter, RFC 5905, 10)."""

_measured: deque[tuple[float, float]] = deque(maxlen=KEPT)
os.register_at_fork(after_in_child=_measured.clear)


def measured(server: datetime, before: float, after: float) -> None:
    """Take in what the server's clock said between two readings of `time.time()`."""
    skew = (before + after) / 2 - server.timestamp()
    if _measured and abs(skew - _measured[-1][1]) > TRUSTED + (after - before):
        _measured.clear()  # one of the clocks was set
    _measured.append((after - before, skew))


def skew() -> float | None:
    """Seconds by which this machine's clock is ahead of Postgres'; None while it was not measured."""
    return min(list(_measured))[1] if _measured else None


def is_wrong() -> bool:
    """Whether this machine's clock differs by more than WRONG seconds."""
    return abs(skew() or 0.0) > WRONG


def local_time() -> float:
    """Seconds of the epoch by the clock of this machine."""
    return time.time()


def now() -> datetime:
    """The time by Postgres' clock, in UTC; by the local one while it was not measured."""
    local, ahead = local_time(), skew() or 0.0
    at = datetime.fromtimestamp(local, UTC)
    return at if abs(ahead) <= TRUSTED else at - timedelta(seconds=ahead)
