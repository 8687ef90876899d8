"""OTLP metrics, traces and logs to rows of the kinds `metric`, `span` and `log_count`. Pure.

Data model: https://opentelemetry.io/docs/specs/otel/metrics/data-model/, with Prometheus' names for what it has no
other: a histogram becomes `NAME_bucket` (cumulative, label `le`), `NAME_count` and `NAME_sum`, a summary `NAME` (label
`quantile`), `NAME_count` and `NAME_sum`. Of an exponential histogram only `NAME_count` and `NAME_sum` are kept, and the
answer says so. Names and units stay as they are sent. Labels are the point's attributes and, below them, those of the
resource that tell resources apart (`otlp_resources.IDENTIFYING`). Sums and histograms since the last export carry the
label `__temporality__="delta"`, because adding them up means something else.

A point or span that is not good is refused alone, counted and named; the others are taken.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import numpy as np
from google.protobuf.message import DecodeError
from opentelemetry.proto.metrics.v1.metrics_pb2 import AGGREGATION_TEMPORALITY_DELTA, DataPointFlags
from opentelemetry.proto.trace.v1.trace_pb2 import Status

from ingest.integrations.logs.templates import Templates, counted
from ingest.integrations.otlp.logs import records
from ingest.integrations.otlp.messages import Parts, attribute
from ingest.integrations.otlp.resources import attributes_of, identity, instance_of, service_of
from ingest.integrations.samples import Refusals, Samples, keep
from ingest.telemetry.decode.builder import Assembly, canonical_json
from ingest.telemetry.decode.columns import Bounds, Rows
from ingest.telemetry.kinds import KINDS
from ingest.telemetry.kinds.declare import MAX_LABELS

SPAN = KINDS["span"]
LOG_COUNT = KINDS["log_count"]
NANOSECONDS = 10**9
NOT_RECORDED = DataPointFlags.DATA_POINT_FLAGS_NO_RECORDED_VALUE_MASK
DELTA = ("__temporality__", "delta")
BROKEN = "an attribute is not one"
REMEMBERED_BYTES = MAX_LABELS
"""Attributes that are longer would not be taken as labels; they are not worth the memory."""
TRACE_BYTES, SPAN_BYTES = 16, 8

Labels = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class ParsedRequest:
    """The rows of a request, what of it was refused, and what its sender may want to know."""

    rows: Rows
    refusals: Refusals
    warnings: tuple[str, ...] = ()

    @property
    def message(self) -> str:
        return "; ".join(filter(None, (self.refusals.sentence(), *self.warnings)))


# Metrics
# ----------------------------------------------------------------------------------------------------------
def metrics(request: Any, region: str, bounds: Bounds) -> ParsedRequest:
    """Rows of an ExportMetricsServiceRequest, as `otlp_messages.read` gives it."""
    points = _Points()
    of = points.parts.of
    for resource_metrics in of(request.resource_metrics):
        of(resource_metrics.resource.attributes)
        resource = identity(attributes_of(resource_metrics.resource))
        for scope_metrics in of(resource_metrics.scope_metrics):
            for metric in of(scope_metrics.metrics):
                points.take(metric, resource)
    rows, _ = points.samples.rows(region, bounds, NANOSECONDS, points.refusals)
    return ParsedRequest(rows, points.refusals, tuple(points.warnings()))


@dataclass(slots=True)
class _Points:
    samples: Samples = field(default_factory=Samples)
    refusals: Refusals = field(default_factory=Refusals)
    parts: Parts = field(default_factory=Parts)
    exponential: int = 0
    unrecorded: int = 0

    def take(self, metric: Any, resource: Labels) -> None:
        which = metric.WhichOneof("data")
        if which is None:
            return
        data = getattr(metric, which)
        self.parts.of(data.data_points)
        base = resource
        if (
            which not in ("gauge", "summary")
            and data.aggregation_temporality == AGGREGATION_TEMPORALITY_DELTA
        ):
            base = (*resource, DELTA)
        if which in ("gauge", "sum"):
            self._numbers(metric.name, data.data_points, base)
        else:
            self._add_points(metric.name, data.data_points, base, _SAMPLES[which])
            self.exponential += len(data.data_points) if which == "exponential_histogram" else 0

    def warnings(self) -> Iterator[str]:
        if self.exponential:
            yield f"of {self.exponential} exponential histogram points only count and sum were kept"
        if self.unrecorded:
            yield f"{self.unrecorded} points say that there was no value, and were left out"

    def _numbers(self, name: str, data_points: Any, base: Labels) -> None:
        samples, known = self.samples, dict[tuple[bytes, ...], int]()
        for point in data_points:
            attributes = tuple(point.attributes)
            series = known.get(attributes)
            if series is None:
                try:
                    series = known[attributes] = samples.series((name, _labels_text(base, attributes)))
                except DecodeError:
                    self.refusals.add(BROKEN, name)
                    continue
            which = point.WhichOneof("value")
            if point.flags & NOT_RECORDED:
                self.unrecorded += 1
            elif which is None:
                self.refusals.add("the point has no value", name)
            else:
                samples.add(
                    series,
                    point.time_unix_nano,
                    point.as_double if which == "as_double" else float(point.as_int),
                )

    def _add_points(self, name: str, data_points: Any, base: Labels, split: Split) -> None:
        for point in data_points:
            attributes = tuple(point.attributes)
            if point.flags & NOT_RECORDED:
                self.unrecorded += 1
                continue
            found = split(point)
            if isinstance(found, str):
                self.refusals.add(found, name)
                continue
            try:
                series = {
                    self.samples.series((name + suffix, _labels_text(base, attributes, more))): value
                    for suffix, more, value in found
                }
            except DecodeError:
                self.refusals.add(BROKEN, name)
                continue
            self.samples.add_many(point.time_unix_nano, series)


def _labels_text(base: Labels, entries: tuple[bytes, ...], more: Labels = ()) -> str:
    """Labels as canonical JSON; of two of one name the later counts. Raises DecodeError."""
    remembered = sum(map(len, entries)) <= REMEMBERED_BYTES
    return (_remembered if remembered else _remembered.__wrapped__)(base, entries, more)


@functools.lru_cache(maxsize=30_000)
def _remembered(base: Labels, entries: tuple[bytes, ...], more: Labels) -> str:
    return canonical_json(dict((*base, *map(attribute, entries), *more)))


Sample = tuple[str, Labels, float]  # suffix of the name, labels more, value
Split = Callable[[Any], list[Sample] | str]


def _count_and_sum(point: Any) -> list[Sample]:
    parts: list[Sample] = [("_count", (), float(point.count))]
    if point.HasField("sum"):
        parts.append(("_sum", (), point.sum))
    return parts


def _histogram(point: Any) -> list[Sample] | str:
    counts, bounds = list(point.bucket_counts), list(point.explicit_bounds)
    if not counts and not bounds:
        return _count_and_sum(point)
    if len(counts) != len(bounds) + 1:
        return "the histogram has not one bucket more than bounds"
    if not all(low < high for low, high in itertools.pairwise((float("-inf"), *bounds, float("inf")))):
        return "the histogram's bounds do not rise"
    total, parts = 0, _count_and_sum(point)
    for count, bound in zip(counts, (*bounds, float("inf")), strict=True):
        total += count
        parts.append(("_bucket", (("le", number_text(bound)),), float(total)))
    return parts


def _summary(point: Any) -> list[Sample]:
    parts: list[Sample] = [("_count", (), float(point.count)), ("_sum", (), point.sum)]
    parts += (("", (("quantile", number_text(each.quantile)),), each.value) for each in point.quantile_values)
    return parts


_SAMPLES: dict[str, Split] = {
    "histogram": _histogram,
    "exponential_histogram": _count_and_sum,
    "summary": _summary,
}


def number_text(number: float) -> str:
    """A number as Prometheus writes it in `le` and `quantile`: `0.5`, `1`, `+Inf`."""
    if number in (float("inf"), float("-inf")):
        return "+Inf" if number > 0 else "-Inf"
    return repr(number).removesuffix(".0")


# Traces
# ----------------------------------------------------------------------------------------------------------
def traces(request: Any, region: str, bounds: Bounds) -> ParsedRequest:
    """Rows of an ExportTraceServiceRequest. A span's time is its start; its status ERROR is its error."""
    refusals, span_rows, of = Refusals(), list[tuple[Any, ...]](), Parts().of
    for resource_spans in of(request.resource_spans):
        of(resource_spans.resource.attributes)
        attributes = attributes_of(resource_spans.resource)
        service, instance = service_of(attributes), instance_of(attributes)
        for scope_spans in of(resource_spans.scope_spans):
            for span in of(scope_spans.spans):
                wrong = _wrong(span)
                if wrong:
                    refusals.add(wrong, f"{service}: {span.name}")
                else:
                    span_rows.append(_row(span, service, instance))
    assembly = Assembly(SPAN, region)
    if span_rows:
        columns = dict(zip(_COLUMNS, map(list, zip(*span_rows, strict=True)), strict=True))
        assembly.add({**columns, "region": [None] * len(span_rows)}, np.arange(1, len(span_rows) + 1))
    return ParsedRequest(_good_spans(assembly, bounds, refusals), refusals)


_COLUMNS = ("time", "trace", "span", "parent", "service", "instance", "operation", "duration_us", "error")


def _row(span: Any, service: str, instance: str) -> tuple[Any, ...]:
    start = span.start_time_unix_nano
    return (
        min(start, 2**63 - 1), span.trace_id.hex(), span.span_id.hex(), span.parent_span_id.hex(), service, instance,
        span.name, (span.end_time_unix_nano - start) / 1000, span.status.code == Status.STATUS_CODE_ERROR,
    )  # fmt: skip


def _wrong(span: Any) -> str:
    if len(span.trace_id) != TRACE_BYTES or len(span.span_id) != SPAN_BYTES:
        return "the trace id has not 16 bytes, or the span id not 8"
    if span.parent_span_id and len(span.parent_span_id) != SPAN_BYTES:
        return "the parent's span id has not 8 bytes"
    if span.end_time_unix_nano < span.start_time_unix_nano:
        return "the span ends before it starts"
    return ""


def _good_spans(assembly: Assembly, bounds: Bounds, refusals: Refusals) -> Rows:
    rows, unfit = assembly.fit_rows(bounds)
    good = np.ones(rows.count, np.bool_)
    operations = rows.names("operation")
    for which, reason in unfit:
        new = which[good[which]]
        good[new] = False
        if len(new):
            refusals.add(reason, operations.names[operations.codes[new[0]]], len(new))
    return keep(rows, good) if unfit else rows


# Logs
# ----------------------------------------------------------------------------------------------------------
_COUNTED = ("time", "component", "template", "severity", "count")


def log_counts(
    request: Any, region: str, bounds: Bounds, now: datetime, templates: Templates
) -> ParsedRequest:
    """Rows of an ExportLogsServiceRequest: its records counted by component, template and severity."""
    refusals = Refusals()
    found = counted(records(request, now), templates)
    assembly = Assembly(LOG_COUNT, region)
    if found:
        columns = dict(zip(_COUNTED, map(list, zip(*found, strict=True)), strict=True))
        assembly.add({**columns, "region": [None] * len(found)}, np.arange(1, len(found) + 1))
    rows, unfit = assembly.fit_rows(bounds)
    good = np.ones(rows.count, np.bool_)
    for which, reason in unfit:
        new = which[good[which]]
        good[new] = False
        if len(new):
            refusals.add(
                f"not counted: {reason}", found[new[0]][2], sum(found[row][4] for row in new.tolist())
            )
    return ParsedRequest(keep(rows, good) if unfit else rows, refusals)
