"""Requests of remote write, small ones, in both versions."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import cramjam

from ingest.integrations.remote_write.messages import V1, V2
from ingest.integrations.remote_write.parse import STALE, Version
from ingest.telemetry.decode.columns import Bounds

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BOUNDS = Bounds.around(NOW, timedelta(days=30), timedelta(minutes=5))
AT = int(NOW.timestamp()) * 1000
STALE_NAN: float = struct.unpack("<d", struct.pack("<Q", STALE))[0]

Labels = Sequence[tuple[str, str]]
Series = tuple[Labels, Sequence[tuple[float, int]], Sequence[Mapping[str, Any]]]
LOAD = (("__name__", "load"), ("host", "a"))


def series(
    labels: Labels = LOAD, *samples: tuple[float, int], histograms: Sequence[Mapping[str, Any]] = ()
) -> Series:
    return labels, samples, histograms


def message(version: Version, *told: Series) -> bytes:
    return _first(told) if version == "1.0" else _second(told)


def _sample(value: float, at: int) -> bytes:
    return bytes(V1["Sample"](value=value, timestamp=at).SerializeToString())


def _first(told: Sequence[Series]) -> bytes:
    request = V1["WriteRequest"]()
    for labels, samples, histograms in told:
        one = V1["TimeSeries"](samples=[_sample(*each) for each in samples], histograms=histograms)
        one.labels.extend(V1["Label"](name=name, value=value).SerializeToString() for name, value in labels)
        request.timeseries.append(one.SerializeToString())
    return bytes(request.SerializeToString())


def _second(told: Sequence[Series]) -> bytes:
    symbols: dict[str, int] = {"": 0}
    request = V2["Request"]()
    for labels, samples, histograms in told:
        one = request.timeseries.add(samples=[_sample(*each) for each in samples], histograms=histograms)
        for pair in labels:
            one.labels_refs.extend(symbols.setdefault(text, len(symbols)) for text in pair)
    request.symbols.extend(symbols)
    return bytes(request.SerializeToString())


def packed(body: bytes) -> bytes:
    return bytes(cramjam.snappy.compress_raw(body))
