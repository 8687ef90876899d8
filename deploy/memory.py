"""Memory of a process that it does not need any more, back to the system.

The C library and Arrow keep what was freed for the next time, which in a worker may be an hour away: after a move of
old telemetry a process held 40 MB that nothing was in.
"""

from __future__ import annotations

import ctypes
import sys
from contextlib import suppress


def give_back() -> None:
    """Return freed memory to the system, where the C library can (glibc). Takes milliseconds."""
    if (arrow := sys.modules.get("pyarrow")) is not None:
        arrow.default_memory_pool().release_unused()
    with suppress(AttributeError, OSError):
        ctypes.CDLL(None).malloc_trim(0)
