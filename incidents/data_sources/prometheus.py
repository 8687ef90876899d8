"""Range queries over Prometheus' HTTP API, https://prometheus.io/docs/prometheus/latest/querying/api/#range-queries.

Through the outbound guard, with a deadline and a limit of size, and remembered for some seconds in this process: a page
that many people have open asks once.
"""

from __future__ import annotations

import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Annotated, Final
from urllib.parse import urlencode

import msgspec

from incidents.data_sources.models import DataSource
from incidents.security.encryption import Lost
from incidents.security.outbound import AddressRefusedError, UnreachableError, post

TIMEOUT: Final = 5.0
"""Seconds that a data source has to answer."""
LARGEST: Final = 2_000_000
"""Bytes of an answer that are read."""
CACHE_SECONDS: Final = 10.0
"""Seconds for which an answer, or a failure, is remembered."""
POINTS: Final = 240
MOST_SERIES: Final = 8
SHORTEST_STEP: Final = 15
_MOST_CACHED: Final = 200


class DataSourceError(Exception):
    """No series: says which source, why, and what would do."""


@dataclass(frozen=True, slots=True)
class Series:
    """One time series: the labels that tell it from the others, and its values, oldest first."""

    name: str
    points: Sequence[tuple[datetime, float]]


@dataclass(frozen=True, slots=True)
class Answer:
    """`left_out` counts series beyond MOST_SERIES; `step` is in seconds."""

    series: Sequence[Series]
    left_out: int
    step: int


class _Row(msgspec.Struct):
    metric: dict[str, str] = {}
    values: list[tuple[float, str]] = []


class _Data(msgspec.Struct):
    result_type: Annotated[str, msgspec.Meta(max_length=20)] = msgspec.field(name="resultType", default="")
    result: msgspec.Raw = msgspec.Raw(b"[]")


class _Body(msgspec.Struct):
    status: str
    data: _Data | None = None
    error: str = ""


_cached: dict[tuple[object, ...], tuple[float, Answer | DataSourceError]] = {}
_lock = Lock()


def query_range(source: DataSource, query: str, start: datetime, end: datetime) -> Answer:
    """The series of `query` from `start` to `end`. Raises DataSourceError."""
    step = max(SHORTEST_STEP, math.ceil((end - start).total_seconds() / POINTS))
    # On multiples of the step: the same question within it, and the same answer.
    first, last = (math.floor(at.timestamp() / step) * step for at in (start, end))
    key = (source.pk, source.url, source.authorization, query, first, last, step)
    now = time.monotonic()
    with _lock:
        until, found = _cached.get(key, (0.0, None))
    if found is None or until < now:
        try:
            found = _fetched(source, query, first, last, step)
        except DataSourceError as error:
            found = error
        with _lock:
            if len(_cached) >= _MOST_CACHED:
                _cached.clear()
            _cached[key] = (time.monotonic() + CACHE_SECONDS, found)
    if isinstance(found, DataSourceError):
        raise DataSourceError(*found.args)
    return found


def _fetched(source: DataSource, query: str, first: int, last: int, step: int) -> Answer:
    if isinstance(source.authorization, Lost):
        raise DataSourceError(
            f"{source.name}: its authorization was encrypted under another DOSSIER_SECRET_KEY"
        )
    form = urlencode(
        {"query": query, "start": first, "end": last, "step": step, "timeout": f"{TIMEOUT:.0f}s"}
    )
    headers = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "application/json"}
    if source.authorization:
        headers["Authorization"] = source.authorization
    address = f"{source.url.rstrip('/')}/api/v1/query_range"
    try:
        reply = post(address, form.encode(), headers, timeout=TIMEOUT, most=LARGEST + 1)
    except (AddressRefusedError, UnreachableError) as error:
        raise DataSourceError(f"{source.name} did not answer: {error}") from error
    if len(reply.body) > LARGEST:
        raise DataSourceError(f"{source.name} answered with more than {LARGEST // 1_000_000} MB")
    if reply.status in (401, 403):
        raise DataSourceError(f"{source.name} answered {reply.status}: its authorization was refused")
    if 300 <= reply.status < 400:
        raise DataSourceError(f"{source.name} answered {reply.status}: redirects are not followed")
    try:
        body = msgspec.json.decode(reply.body, type=_Body)
        rows = (
            msgspec.json.decode(body.data.result if body.data else b"[]", type=list[_Row])
            if body.status == "success"
            else []
        )
    except msgspec.MsgspecError as error:
        raise DataSourceError(
            f"{source.name} answered {reply.status} without the JSON of a range query: {error}"
        ) from error
    if body.status != "success" or not reply.taken:
        raise DataSourceError(
            f"{source.name} answered {reply.status}: {body.error[:300] or 'no reason given'}"
        )
    telling = _telling([row.metric for row in rows])
    series = [Series(_named(row.metric, telling), _points(row.values)) for row in rows[:MOST_SERIES]]
    return Answer(series, max(0, len(rows) - MOST_SERIES), step)


def _telling(metrics: Sequence[Mapping[str, str]]) -> list[str]:
    """Names of the labels in which the series differ."""
    names = sorted({name for one in metrics for name in one})
    return [name for name in names if len({one.get(name) for one in metrics}) > 1]


def _named(metric: Mapping[str, str], telling: Sequence[str]) -> str:
    if not telling:
        return metric.get("__name__") or "value"
    return ", ".join(f"{name}={metric[name]}" for name in telling if name in metric) or "value"


def _points(values: Sequence[tuple[float, str]]) -> list[tuple[datetime, float]]:
    """Without what is no number: NaN and infinities cannot be drawn."""
    found = []
    for at, text in values:
        try:
            value = float(text)
        except ValueError:
            continue
        if math.isfinite(value):
            found.append((datetime.fromtimestamp(at, UTC), value))
    return found


def around(opened: datetime, end: datetime) -> tuple[datetime, datetime]:
    """Span of a metric that an incident shows: an hour before it opened, and at most the day that ends with it."""
    return max(opened - timedelta(hours=1), end - timedelta(days=1)), end
