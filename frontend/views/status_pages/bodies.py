"""Rendered status pages, in the memory of each process: a hit reads no database.

Which pages there are, and their versions, is read once every FRESH seconds by one request of a process; the others take
what is there meanwhile. A body is rendered once for a version and a day, by one
request. While the database does not answer, the last bodies are served.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from threading import Lock
from typing import Final

import structlog
from django.db import Error

from incidents.status_pages.models import StatusPage
from ingest.commands import database_is_away

FRESH: Final = 1.0
"""Seconds for which a process takes its list of pages as current."""
MOST: Final = 300
"""Bodies in the memory of a process."""
log = structlog.get_logger("status_pages")


@dataclass(frozen=True, slots=True)
class Body:
    """Body of an answer, and its strong ETag with quotes."""

    content: bytes
    content_type: str
    etag: str

    @staticmethod
    def of(content: str, content_type: str) -> Body:
        raw = content.encode()
        return Body(raw, content_type, f'"{hashlib.sha256(raw).hexdigest()[:32]}"')


@dataclass(frozen=True, slots=True)
class Known:
    """A page as the list has it."""

    version: int
    public: bool


Render = Callable[[str, datetime], Body]
"""The body of the page with a slug at a time."""


@dataclass(slots=True)
class Bodies:
    """`clock` is in seconds and only rises."""

    clock: Callable[[], float] = time.monotonic
    _pages: dict[str, Known] | None = None
    _read_at: float = 0.0
    _bodies: dict[tuple[str, str], tuple[int, date, Body]] = field(default_factory=dict)
    _lock: Lock = field(default_factory=Lock)
    _rendering: dict[tuple[str, str], Lock] = field(default_factory=dict)

    def page(self, slug: str) -> Known | None:
        """None where there is no such page."""
        return self._current().get(slug)

    def body(self, slug: str, known: Known, form: str, render: Render) -> Body:
        now = datetime.now(UTC)
        version, day, found = self._bodies.get((slug, form), (-1, date.min, None))
        if found is not None and version == known.version and day == now.date():
            return found
        lock = self._rendering.setdefault((slug, form), Lock())
        if not lock.acquire(blocking=found is None):
            assert found is not None
            return found  # another request renders; the next one has its body
        try:
            version, day, newer = self._bodies.get((slug, form), (-1, date.min, None))
            if newer is not None and version == known.version and day == now.date():
                return newer
            made = render(slug, now)
            if len(self._bodies) >= MOST:
                self._bodies.clear()
            self._bodies[slug, form] = (known.version, now.date(), made)
            return made
        except Error as error:
            if found is None or not database_is_away(error):
                raise
            return found
        finally:
            lock.release()

    def clear(self) -> None:
        self._pages = None
        self._bodies.clear()

    def _current(self) -> dict[str, Known]:
        pages = self._pages
        if pages is not None and self.clock() - self._read_at < FRESH:
            return pages
        if not self._lock.acquire(blocking=pages is None):
            assert pages is not None
            return pages
        try:
            self._pages = _read()
        except Error as error:
            if pages is None or not database_is_away(error):
                raise
            log.warning("status pages served without the database")
        finally:
            self._read_at = self.clock()
            self._lock.release()
        assert self._pages is not None
        return self._pages


def _read() -> dict[str, Known]:
    rows = StatusPage.objects.values_list("slug", "version", "public")
    return {slug: Known(version, public) for slug, version, public in rows}


BODIES: Final = Bodies()
