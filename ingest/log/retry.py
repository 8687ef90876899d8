"""Try a command again when another writer was faster."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import TypeVar

from django.db import OperationalError, connection

from ingest.db import database
from ingest.log.types import StreamVersionError

T = TypeVar("T")

FIRST_PAUSE = 0.002
LONGEST_PAUSE = 0.2


def retrying(fn: Callable[[], T], attempts: int = 8) -> T:
    """`fn()`, called again after a short random pause while it raises StreamVersionError or was the victim of a
    deadlock, `attempts` times in all.

    `fn` loads, decides and appends within one `transaction.atomic`. The pause doubles each time and is
    drawn from the whole span ("full jitter"), so that writers who met once do not meet again.
    """
    for attempt in range(attempts - 1):
        try:
            return fn()
        except StreamVersionError:
            pass
        except OperationalError as error:
            # Within a transaction of the caller nothing can be done again: it has failed as a whole.
            if not database.is_deadlock(error) or connection.in_atomic_block:
                raise
        time.sleep(random.uniform(0, min(LONGEST_PAUSE, FIRST_PAUSE * 2**attempt)))
    return fn()
