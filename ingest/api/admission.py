"""Admission control of one process: senders hear "later" before it is overloaded, not when it is; and no body is
read or unpacked beyond its limit.

Three rules, for every endpoint of machines:

- A key may send `rate` requests a second, and `SPARE` seconds' worth of them at once.
- When as many requests are under way as threads allow, and half of them for longer than `PATIENCE`, waiting helps
  nobody: what comes is refused at once, by the threads that were kept free for it.
- A key that fills three quarters of the threads while a quarter of all waits is refused before the others are.

Many quick requests at the same time are no overload: they share their transactions (`ingest.db.database`)."""

from __future__ import annotations

import threading
import time
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from http import HTTPStatus
from typing import Literal

import zstandard
from django.conf import settings
from django.http import HttpRequest
from prometheus_client import Counter as Counted

from ingest.db import disk
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError

PATIENCE = 1.0
"""Seconds after which a request that is under way counts as slow."""
SPARE = 10.0
"""Seconds' worth of its rate that a key may send at once."""
SPARE_THREADS = 2
"""Threads that refuse while the others wait."""
MOST_KEYS = 10_000
LARGE = 2**20
"""Bytes of a body of messages, unpacked, from which on one is read after the other."""
LATER = 5
"""Seconds after which who was refused for load may try again."""

Why = Literal["rate", "busy", "key busy", "disk full"]
TELEMETRY = frozenset({"telemetry", "remote-write", "otlp-metrics", "otlp-traces"})
"""Endpoints that are closed first when the disk fills up. Logs may hold alerts and stay open."""
DISK_FULL = 60
"""Seconds after which a sender refused for a full disk may try again."""
REFUSED = Counted(
    "dossier_ingest_requests_rejected", "Requests of senders rejected for load", ["endpoint", "reason"]
)
_refused = cache(REFUSED.labels)


class OverloadedError(Exception):
    """Nothing of the request was stored; it may come again after `retry_after` seconds. `status` is of the answer."""

    status = HTTPStatus.TOO_MANY_REQUESTS

    def __init__(self, why: Why, message: str, retry_after: int) -> None:
        super().__init__(f"{message}; nothing was stored. Try again in {retry_after} s")
        self.why = why
        self.retry_after = retry_after


class DiskFullError(OverloadedError):
    """Telemetry is refused so that alerts still find room. 503 and not 507, which senders of OTLP do not repeat."""

    status = HTTPStatus.SERVICE_UNAVAILABLE

    def __init__(self) -> None:
        super().__init__(
            "disk full", "the disk of Dossier is nearly full and only alerts are taken", DISK_FULL
        )


class Intake:
    """Requests of senders under way in this process. `rate`: requests a second of one key; `threads`: that serve."""

    def __init__(self, rate: float, threads: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._rate = rate
        self._most = max(1, threads - SPARE_THREADS)
        self._clock = clock
        self._lock = threading.Lock()
        self._began: dict[int, float] = {}  # by number of request: when it began
        self._of_key: Counter[str] = Counter()
        self._left: dict[str, tuple[float, float]] = {}  # by key: how many requests, as of when
        self._number = 0

    @contextmanager
    def admitted(self, key: str) -> Iterator[None]:
        """Around what a request does once its key is known. Raises OverloadedError."""
        number = self._enter(key)
        try:
            yield
        finally:
            with self._lock:
                del self._began[number]
                self._of_key[key] -= 1

    def _enter(self, key: str) -> int:
        with self._lock:
            now = self._clock()
            self._spend(key, now)
            full, mine = len(self._began) >= self._most, 4 * self._of_key[key] >= 3 * self._most
            if full or mine:  # seldom so: only then it costs a look at each
                slow = sum(now - began > PATIENCE for began in self._began.values())
                if full and 2 * slow >= self._most:
                    raise OverloadedError("busy", "too many requests wait to be stored", LATER)
                if mine and 4 * slow >= self._most:
                    raise OverloadedError("key busy", f"the key {key} has too many requests under way", LATER)
            self._number += 1
            self._began[self._number] = now
            self._of_key[key] += 1
            return self._number

    def _spend(self, key: str, now: float) -> None:
        """A token bucket: it fills at `rate` up to SPARE seconds' worth, and each request takes one."""
        most = max(1.0, self._rate * SPARE)
        left, then = self._left.get(key, (most, now))
        left = min(most, left + (now - then) * self._rate)
        if left < 1:
            wait = max(1, round((1 - left) / self._rate))
            raise OverloadedError(
                "rate", f"the key {key} sends more than {self._rate:g} requests a second", wait
            )
        if len(self._left) >= MOST_KEYS:
            self._left.clear()
        self._left[key] = (left - 1, now)


@cache
def intake() -> Intake:
    """Of this process."""
    return Intake(settings.INGEST_RATE_PER_KEY, settings.WEB_THREADS)


_one_large = threading.Lock()


@contextmanager
def in_turn(size: int) -> Iterator[None]:
    """Around the reading of a body of messages or alerts: of the large ones this process reads one at a time.

    An empty message is two bytes of a body and ninety times as much in memory, so that a few bodies of nothing else,
    read at once, would take all that there is.
    """
    with _one_large if size >= LARGE else nullcontext():
        yield


@contextmanager
def admitted(key: str, endpoint: str) -> Iterator[None]:
    """As `Intake.admitted` of this process, and counts who was refused. Raises OverloadedError."""
    try:
        if endpoint in TELEMETRY and disk.state() != "enough":
            raise DiskFullError
        with intake().admitted(key):
            yield
    except OverloadedError as error:
        _refused(endpoint, error.why).inc()
        raise


def read_body(request: HttpRequest, limit: int) -> bytes:
    """The body as sent. Raises BodyTooLargeError without reading on, InvalidBodyError when the sender went away."""
    # Without a length the body comes in chunks; Django would take that for no body at all.
    length = request.META.get("CONTENT_LENGTH") or ""
    chunked = not length and "wsgi.input" in request.META
    if length.isdecimal() and int(length) > limit:
        raise BodyTooLargeError(f"the body is larger than {limit} bytes")
    try:
        body: bytes = (request.META["wsgi.input"] if chunked else request).read(limit + 1)
    except OSError as error:
        raise InvalidBodyError("the body ended early") from error
    if len(body) > limit:
        raise BodyTooLargeError(f"the body is larger than {limit} bytes")
    return body


ENCODINGS = ("identity", "gzip", "zstd")
WINDOW = 2**26
"""Largest zstd window, bytes: what a frame may have us set aside before its first byte comes out."""
STEP = 1024
"""Bytes of zstd taken at a time. A block of four bytes can unfold to 128 KiB, so this bounds the overshoot to
32 MiB."""


def decompress(body: bytes, encoding: str, limit: int) -> bytes:
    """The body without its encoding. Raises BodyTooLargeError above `limit` bytes, InvalidBodyError for a broken or
    cut one.

    Raises LookupError for an encoding that is not in ENCODINGS.
    """
    match encoding:
        case "" | "identity":
            if len(body) > limit:
                raise _too_large(limit)
            return body
        case "gzip" | "x-gzip":
            return _gunzip(body, limit)
        case "zstd":
            return _unzstd(body, limit)
    raise LookupError(encoding)


def _gunzip(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    size = 0
    while body:
        stream = zlib.decompressobj(wbits=31)
        try:
            parts.append(stream.decompress(body, limit + 1 - size))
        except zlib.error as error:
            raise InvalidBodyError("not good gzip") from error
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if not stream.eof:
            raise InvalidBodyError("the gzip body is cut short")
        body = stream.unused_data.lstrip(b"\0")  # a file of several members, or padded
    return b"".join(parts)


def _unzstd(body: bytes, limit: int) -> bytes:
    parts: list[bytes] = []
    size = place = 0
    stream = None
    while place < len(body):
        stream = stream or zstandard.ZstdDecompressor(max_window_size=WINDOW).decompressobj()
        step = body[place : place + STEP]
        place += len(step)
        try:
            parts.append(stream.decompress(step))
        except zstandard.ZstdError as error:
            raise InvalidBodyError("not good zstd") from error
        size += len(parts[-1])
        if size > limit:
            raise _too_large(limit)
        if stream.eof:
            place -= len(stream.unused_data)  # the next frame
            stream = None
    if stream is not None:
        raise InvalidBodyError("the zstd body is cut short")
    return b"".join(parts)


def _too_large(limit: int) -> BodyTooLargeError:
    return BodyTooLargeError(f"the body is larger than {limit} bytes after decompression")
