"""Many at once, and whoever cannot go on apart from the others."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TypeVar

import structlog

from ingest.db.database import is_lost

T = TypeVar("T", bound=Hashable)


def in_halves(items: Sequence[T], do: Callable[[Sequence[T]], int], failed: dict[T, Exception]) -> int:
    """`do`, which is one transaction, with all of them; the sum of what it returned.

    One that cannot go on keeps no other from it: halves that fail are halved until it is alone, and it is in `failed`
    then, with what it raised. Raises only what says that the database is gone, which is true of all of them.
    """
    try:
        return do(items)
    except Exception as error:  # whatever one of them raises, the others go on
        if is_lost(error):
            raise
        if len(items) > 1:
            half = len(items) // 2
            return in_halves(items[:half], do, failed) + in_halves(items[half:], do, failed)
        failed[items[0]] = error
        return 0


class Backoff:
    """By id those that could not go on, for `seconds`: so that they are not in everybody's way each time. One process
    knows them; `clock` counts seconds, so that a clock on the wall that is set back frees none too late."""

    def __init__(self, logger: str, seconds: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._log, self._seconds, self._clock = structlog.get_logger(logger), seconds, clock
        self._until: dict[str, float] = {}

    def ids(self) -> list[str]:
        """Those that are passed over now."""
        now = self._clock()
        self._until = {id_: until for id_, until in self._until.items() if until > now}
        return list(self._until)

    def add(self, failed: Mapping[str, Exception]) -> None:
        """Tells of each that failed, and raises what the first one raised; call it when all others have gone on."""
        for id_, error in failed.items():
            self._log.error("what was due failed", id=id_, exc_info=error)
            self._until[id_] = self._clock() + self._seconds
        for error in failed.values():
            raise error
