"""Many at once, and whoever cannot go on apart from the others."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import TypeVar

from ingest.log.database import is_lost

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
