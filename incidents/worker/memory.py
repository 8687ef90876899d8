"""Memory of a process whose threads begin and end: one pool for all of them.

glibc gives threads pools of their own, up to eight a CPU, and each pool keeps what its threads once needed. The threads
of a queue begin and end with its messages, so the process grows for as long as messages of another size or number meet
another pool.
"""

from __future__ import annotations

import ctypes
from typing import Final

POOLS: Final = 2
"""One for the first thread, one for all others."""
_M_ARENA_MAX: Final = -8
"""Parameter of mallopt, from `malloc.h`."""


def share_pools() -> bool:
    """Whether threads share POOLS pools from now on. Other C libraries than glibc have no such setting."""
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    return mallopt is not None and bool(mallopt(_M_ARENA_MAX, POOLS))
