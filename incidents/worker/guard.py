"""The one place of `manage.py deliver` that catches every exception: one part fails, the others go on."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that ended a part of the process. The caller logs it and decides when that part runs again."""

    error: Exception


def attempt(work: Callable[[], T]) -> T | Failure:
    """The result of `work`, or the exception that ended it.

    For sweeps, loops, rounds of messages and webhooks, and senders, which are third-party code: whatever one raises
    must not keep the others from notifying people.
    """
    try:
        return work()
    except Exception as error:  # noqa: BLE001  the boundary itself
        return Failure(error)
