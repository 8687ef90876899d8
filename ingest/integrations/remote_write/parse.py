"""Prometheus remote write 1.0 and 2.0 to rows of the kind `metric`. Pure.

Bodies are snappy blocks of protobuf (`remote_write_messages`). `__name__` becomes the row's name, the other labels its
labels. Of a native histogram `NAME_count` and `NAME_sum` are kept; exemplars and metadata are not.

A series or sample that is wrong is refused alone. What is no number is neither kept nor wrong: a staleness marker says
that there is none any more (a NaN with bits of its own), and other NaN and infinite values cannot be summed. They are
counted apart.
"""

from __future__ import annotations

import functools
import math
import struct
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, Literal

import cramjam
import numpy as np
from google.protobuf.message import DecodeError
from numpy.typing import NDArray

from ingest.integrations.remote_write.messages import V1, V2
from ingest.integrations.samples import Refusals, Samples
from ingest.telemetry.decode.builder import canonical_json
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.errors import BodyTooLargeError, InvalidBodyError
from ingest.telemetry.kinds.declare import MAX_LABELS

Version = Literal["1.0", "2.0"]
MESSAGES: dict[str, Version] = {
    "": "1.0",
    "prometheus.WriteRequest": "1.0",
    "io.prometheus.write.v2.Request": "2.0",
}
"""Messages by the parameter `proto` of the media type."""
MOST_BYTES = 20 * 2**20
"""Of a body once it is unpacked; senders' bodies are far below a megabyte."""
MOST_SERIES = 400_000
"""In a body of that size every series has fifty bytes. An empty one takes two, and dozens in memory."""
MILLISECONDS = 1000
STALE = 0x7FF0000000000002
"""The bits of a staleness marker (prometheus/prometheus, model/value)."""
REMEMBERED_BYTES = 2 * MAX_LABELS
"""Labels that are longer would not be taken; they are not worth the memory."""
NO_VALUE = b"\x09" + bytes(8)
"""Bytes of a sample that is 0, which senders leave out."""
NAME = "__name__"


@dataclass(slots=True)
class Written:
    """The rows of a request, and what was not taken of it."""

    rows: Rows
    samples: int
    histograms: int
    refusals: Refusals
    left_out: dict[str, int]
    """Numbers of samples by kind, such as `staleness markers`; nothing is wrong with them."""


# Bodies
# ----------------------------------------------------------------------------------------------------------
def unpack(body: bytes, limit: int = MOST_BYTES) -> bytes:
    """A snappy block, unpacked. Raises BodyTooLargeError by what the block says of itself, before unpacking;
    InvalidBodyError."""
    try:
        if cramjam.snappy.decompress_raw_len(body) > limit:
            raise BodyTooLargeError(f"the body is larger than {limit} bytes after decompression")
        return bytes(cramjam.snappy.decompress_raw(body))
    except cramjam.DecompressionError as error:
        raise InvalidBodyError(f"not a snappy block: {error}") from error


def rows(message: bytes, version: Version, region: str, bounds: Bounds) -> Written:
    """The rows of a message, unpacked. Raises InvalidBodyError."""
    request = V1["WriteRequest"] if version == "1.0" else V2["Request"]
    try:
        parsed = request.FromString(message)
    except DecodeError as error:
        raise InvalidBodyError(f"not a protobuf {request.DESCRIPTOR.full_name}: {error}") from error
    if len(parsed.timeseries) > MOST_SERIES:
        raise InvalidBodyError(f"the body holds more than {MOST_SERIES} series")
    made = _Reading()
    if version == "1.0":
        made.first(parsed.timeseries)
    else:
        made.second(parsed.timeseries, tuple(parsed.symbols))
    made.finish()
    found, good = made.samples.rows(region, bounds, MILLISECONDS, made.refusals)
    histograms = int(good[np.array(made.histograms, np.int64)].sum())
    return Written(found, int(good.sum()) - histograms, histograms, made.refusals, dict(made.left_out))


@dataclass(slots=True)
class _Reading:
    samples: Samples = field(default_factory=Samples)
    refusals: Refusals = field(default_factory=Refusals)
    left_out: Counter[str] = field(default_factory=Counter)
    histograms: list[int] = field(default_factory=list)
    """Points that are histograms."""
    series: list[int] = field(default_factory=list)
    alike: list[bytes] = field(default_factory=list)
    """Samples, and their series, that look as nearly all do; see `_columns`."""

    def first(self, timeseries: Iterable[bytes]) -> None:
        """Series of 1.0. Nearly all are labels that were seen before, with one sample behind them."""
        for entry in timeseries:
            if entry[-18:-16] == b"\x12\x10" and (named := _labels_alone(entry[:-18])):
                self._add(named, entry[-16:])
            elif entry[-9:-7] == b"\x12\x07" and (named := _labels_alone(entry[:-9])):
                self._add(named, NO_VALUE + entry[-7:])
            else:
                try:
                    one = V1["TimeSeries"].FromString(entry)
                except DecodeError:
                    self.refusals.add("the series is not one")
                    continue
                self._whole(one, _first_names(tuple(one.labels)))

    def second(self, timeseries: Any, symbols: tuple[str, ...]) -> None:
        """Series of 2.0, whose labels are numbers of symbols."""
        for one in timeseries:
            self._whole(one, _second_names(symbols, one.labels_refs))

    def finish(self) -> None:
        """Take the samples that look alike; nothing can be added after it."""
        times, values, odd = _columns(self.alike)
        series = np.array(self.series, np.int32)
        for place in np.flatnonzero(odd).tolist():
            self._one(self.series[place], self.alike[place])
        finite = np.isfinite(values)
        for value in values[~finite & ~odd].tolist():
            self._leave_out(value)
        good = finite & ~odd
        self.samples.add_bulk(series[good], times[good], values[good])

    def _add(self, named: tuple[str, str], sample: bytes) -> None:
        self.series.append(self.samples.series(named))
        self.alike.append(sample)

    def _whole(self, one: Any, named: tuple[str, str]) -> None:
        """A series with any number of samples and histograms; without a name `named` says what is wrong."""
        if not named[0]:
            self.refusals.add(named[1], count=len(one.samples) + len(one.histograms) or 1)
            return
        for sample in one.samples:
            if len(sample) == 16:
                self._add(named, sample)
            else:
                self._one(self.samples.series(named), sample)
        for histogram in one.histograms:
            self._histogram(histogram, named)

    def _one(self, series: int, sample: bytes) -> None:
        try:
            parsed = V1["Sample"].FromString(sample)
        except DecodeError:
            self.refusals.add("the sample is not one")
            return
        if math.isfinite(parsed.value):
            self.samples.add(series, parsed.timestamp, parsed.value)
        else:
            self._leave_out(parsed.value)

    def _histogram(self, histogram: Any, named: tuple[str, str]) -> None:
        if not math.isfinite(histogram.sum):
            self._leave_out(histogram.sum)
            return
        (name, labels), count = named, float(histogram.count_int) or histogram.count_float
        parts = {f"{name}_count": count, f"{name}_sum": histogram.sum}
        series = {self.samples.series((part, labels)): value for part, value in parts.items()}
        self.histograms.append(self.samples.points)
        self.samples.add_many(histogram.timestamp, series)

    def _leave_out(self, value: float) -> None:
        stale = struct.pack("<d", value) == struct.pack("<Q", STALE)
        self.left_out["staleness markers" if stale else "samples that are no finite number"] += 1


# Samples
# ----------------------------------------------------------------------------------------------------------
_SHIFTS = np.arange(6) * 7


def _columns(samples: list[bytes]) -> tuple[NDArray[np.int64], NDArray[np.float64], NDArray[np.bool_]]:
    """Times (milliseconds) and values of samples of 16 bytes each, and which of them look otherwise.

    They are a tag, the value as eight bytes, a tag and the time, which takes six bytes of seven bits each from 2004
    until 2109, all but the last with their highest bit set. Shapes (samples,).
    """
    table = np.frombuffer(b"".join(samples), np.uint8).reshape(-1, 16)
    values = np.ascontiguousarray(table[:, 1:9]).view("<f8").ravel()
    digits = table[:, 10:]
    odd = (table[:, 0] != 0x09) | (table[:, 9] != 0x10) | ((digits >= 0x80) != _GO_ON).any(axis=1)
    times = ((digits & 0x7F).astype(np.int64) << _SHIFTS).sum(axis=1)
    return times, values, odd


_GO_ON = np.array([True] * 5 + [False])


# Labels
# ----------------------------------------------------------------------------------------------------------
# The name of a series and its other labels as canonical JSON; without a name, why the series is refused.
def _labels_alone(raw: bytes) -> tuple[str, str] | None:
    """Label of bytes that are nothing but good labels; None for others.

    Only then do bytes and what follows them mean the same together as apart.
    """
    return (_seen if len(raw) <= REMEMBERED_BYTES else _seen.__wrapped__)(raw)


@functools.lru_cache(maxsize=50_000)
def _seen(raw: bytes) -> tuple[str, str] | None:
    try:
        one = V1["TimeSeries"].FromString(raw)
    except DecodeError:
        return None
    named = _first_names(tuple(one.labels))
    return named if named[0] and not one.samples and not one.histograms else None


def _first_names(entries: tuple[bytes, ...]) -> tuple[str, str]:
    try:
        labels = [V1["Label"].FromString(label) for label in entries]
    except DecodeError:
        return "", "a label is not one"
    return _named([(label.name, label.value) for label in labels])


def _second_names(symbols: tuple[str, ...], refs: Iterable[int]) -> tuple[str, str]:
    try:
        attributes = tuple(symbols[ref] for ref in refs)
    except IndexError:
        return "", "a label refers to a symbol that is not there"
    return (_second if sum(map(len, attributes)) <= REMEMBERED_BYTES else _second.__wrapped__)(attributes)


@functools.lru_cache(maxsize=50_000)
def _second(entries: tuple[str, ...]) -> tuple[str, str]:
    if len(entries) % 2:
        return "", "a label has no value"
    return _named(list(zip(entries[::2], entries[1::2], strict=True)))


def _named(pairs: list[tuple[str, str]]) -> tuple[str, str]:
    labels = dict(pairs)
    if len(labels) < len(pairs):
        return "", "a label is given twice"
    if "" in labels:
        return "", "a label has no name"
    name = labels.pop(NAME, "")
    if not name:
        return "", f"the series has no label {NAME}"
    return name, canonical_json({label: value for label, value in labels.items() if value})
