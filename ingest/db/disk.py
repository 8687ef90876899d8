"""Free space where Dossier keeps its data: warned of early, and telemetry gives way to alerts."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from django.conf import settings

LOW = 0.10
"""Share of the file system below which a warning stands."""
SCARCE = 0.05
"""Share below which telemetry is refused, so that alerts and incidents still find room."""
PLENTY = 10 * 2**30
"""Bytes that are never scarce, on however large a disk."""
FULL = 16 * 2**20
"""Bytes below which Postgres, whose log grows by as much at a time, may store nothing."""
CACHED_FOR = 5.0
"""Seconds for which a measurement is used again."""


@dataclass(frozen=True, slots=True)
class Space:
    free: int
    size: int

    @property
    def share(self) -> float:
        return self.free / self.size if self.size else 1.0

    @property
    def low(self) -> bool:
        return self.share < LOW

    @property
    def scarce(self) -> bool:
        return self.share < SCARCE and self.free < PLENTY

    @property
    def full(self) -> bool:
        return bool(self.size) and self.free < FULL

    @property
    def warning(self) -> str:
        """A sentence for people, empty while there is room."""
        if not self.low:
            return ""
        so = "telemetry is refused" if self.scarce else f"below {SCARCE:.0%} telemetry is refused"
        return f"disk: {self.share:.1%} free ({self.free / 2**30:.1f} GiB); {so}"


def measure(path: Path) -> Space:
    """Of the file system that `path` is on, for a user who is not root; OSError where there is none."""
    found = os.statvfs(path)
    return Space(found.f_bavail * found.f_frsize, found.f_blocks * found.f_frsize)


_last: dict[Path, tuple[float, Space]] = {}


def space() -> Space:
    """Of DOSSIER_HOME, measured every CACHED_FOR seconds."""
    home: Path = settings.HOME.root
    at, known = _last.get(home, (0.0, None))
    if known is None or time.monotonic() - at > CACHED_FOR:
        try:
            known = measure(home)
        except OSError:
            known = Space(0, 0)  # no such directory yet, and an own Postgres elsewhere: nothing is known
        _last[home] = (time.monotonic(), known)
    return known


def state() -> Literal["enough", "scarce", "full"]:
    """State of the disk: enough is free, scarce (telemetry is refused, so that alerts find room) or full."""
    known = space()
    return "full" if known.full else "scarce" if known.scarce else "enough"
