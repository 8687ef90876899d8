"""Results of SuperBench as `benchmark` rows. Pure: bytes in, rows out.

Two files are read (SuperBench, Xiong et al., USENIX ATC 2024; https://github.com/microsoft/superbenchmark):

- `results-summary.jsonl`: one JSON object a node, `{"node": "sb-01", "kernel-launch/event_time:0": 0.006, …}`. A key
  is `{benchmark}[:{annotation}]/[{run}/]{metric}[:{rank}]`. Runs become the `values` of one row; the rank stays part
  of the metric, because one slow GPU of eight hides in a sample of all eight.
- `monitor.jsonl`: one JSON object a sample, `{"time": "2021-12-06 04:19:35", "gpu_power:0": 63, …}`, of one node.

A value that is null or NaN was not measured and gives no row. The summary has no times and says nothing of the kind
of machine: the caller does.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from ingest.log.types import rfc3339
from ingest.telemetry.kinds.declare import is_component

NODE = "node"
MONITOR = "monitor"
TIME = "time"
_RESULT_KEYS = frozenset({NODE, "benchmark", "metric", "values"})


class InvalidResultsError(ValueError):
    """The payload is not what SuperBench writes. `line` counts from 1."""

    def __init__(self, line: int, field: str, reason: str) -> None:
        self.line, self.field, self.reason = line, field, reason
        super().__init__(f"line {line}, {field}: {reason}" if field else f"line {line}: {reason}")


@dataclass(frozen=True, slots=True)
class NodeResults:
    """Measurements of one node: `metrics` by their full names as SuperBench writes them, None where not measured."""

    node: str
    metrics: Mapping[str, float | None]


@dataclass(frozen=True, slots=True)
class MetricName:
    """A key of the summary in its parts; `run` is None where a benchmark ran once."""

    benchmark: str
    metric: str
    run: int | None = None


def split_name(key: str) -> MetricName:
    """`gpt_models/pytorch-gpt2-large/1/fp16_train_throughput` is run 1 of a metric of `gpt_models/pytorch-gpt2-large`.

    A key without a slash is a metric of the benchmark of that name.
    """
    head, slash, metric = key.rpartition("/")
    if not slash:
        return MetricName(key.partition(":")[0], key)
    before, _, last = head.rpartition("/")
    if before and last.isascii() and last.isdigit():
        return MetricName(before, metric, int(last))
    return MetricName(head, metric)


def is_summary(payload: bytes) -> bool:
    """Whether the first line is an object as `results-summary.jsonl` has them, and no `benchmark` row."""
    first = payload.lstrip().partition(b"\n")[0]
    try:
        found = json.loads(first)
    except ValueError:
        return False
    return (
        isinstance(found, dict) and NODE in found and not found.keys() >= _RESULT_KEYS and TIME not in found
    )


def is_monitor(payload: bytes) -> bool:
    """Whether the first line is a sample as `monitor.jsonl` has them."""
    first = payload.lstrip().partition(b"\n")[0]
    try:
        found = json.loads(first)
    except ValueError:
        return False
    return isinstance(found, dict) and TIME in found and NODE not in found


def parse_results(payload: bytes) -> list[NodeResults]:
    """The nodes of a summary, in the order of its lines. Raises InvalidResultsError naming line, key and reason."""
    results = []
    for number, found in _objects(payload):
        name = found.get(NODE)
        if not isinstance(name, str) or not is_component(_component(name)):
            raise InvalidResultsError(
                number, NODE, f"{name!r} is not a node's name: a text without white space"
            )
        metrics = {key: _number(number, key, value) for key, value in found.items() if key != NODE}
        results.append(NodeResults(name, metrics))
    if not results:
        raise InvalidResultsError(1, "", "there are no results: one JSON object a node is expected")
    return results


def benchmark_rows(results: list[NodeResults], at: datetime, sku: str = "") -> list[dict[str, Any]]:
    """`benchmark` rows of the results, all taken as of one moment; one row for each node and metric.

    Raises ValueError if `at` has no time zone.
    """
    rows = []
    for one in results:
        samples: dict[tuple[str, str], list[float]] = {}
        for key, value in one.metrics.items():
            name = split_name(key)
            if value is not None:
                samples.setdefault((name.benchmark, name.metric), []).append(value)
        rows += [
            _row(at, _component(one.node), benchmark, metric, values, sku)
            for (benchmark, metric), values in samples.items()
        ]
    return rows


def monitor_rows(payload: bytes, node: str, sku: str = "") -> list[dict[str, Any]]:
    """`benchmark` rows of monitor samples of one node, with `monitor` as the benchmark.

    Times without a zone are UTC. Raises InvalidResultsError.
    """
    if not is_component(_component(node)):
        raise InvalidResultsError(0, NODE, f"{node!r} is not a node's name: a text without white space")
    rows = []
    for number, found in _objects(payload):
        at = _moment(number, found.get(TIME))
        for key, raw in found.items():
            value = None if key == TIME else _number(number, key, raw)
            if value is not None:
                rows.append(_row(at, _component(node), MONITOR, key, [value], sku))
    return rows


def _row(
    at: datetime, node: str, benchmark: str, metric: str, values: list[float], sku: str
) -> dict[str, Any]:
    if at.tzinfo is None:
        raise ValueError(f"time {at.isoformat()} has no time zone")
    time = rfc3339(at)
    row: dict[str, Any] = {
        "time": time,
        NODE: node,
        "benchmark": benchmark,
        "metric": metric,
        "values": values,
    }
    return {**row, "sku": sku} if sku else row


def _component(name: str) -> str:
    return name if name.startswith(f"{NODE}/") else f"{NODE}/{name}"


def _objects(payload: bytes) -> Iterator[tuple[int, dict[str, Any]]]:
    try:
        lines = payload.decode().splitlines()
    except UnicodeDecodeError as error:
        raise InvalidResultsError(payload.count(b"\n", 0, error.start) + 1, "", "is not UTF-8") from error
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            found = json.loads(line)
        except ValueError as error:
            raise InvalidResultsError(number, "", f"is not JSON: {error}") from error
        if not isinstance(found, dict):
            raise InvalidResultsError(number, "", "is not a JSON object")
        yield number, found


def _number(line: int, key: str, value: Any) -> float | None:
    """The value, or None where nothing was measured."""
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidResultsError(line, key, f"{value!r} is not a number")
    try:
        number = float(value)
    except OverflowError as error:
        raise InvalidResultsError(line, key, "is too large") from error
    if math.isinf(number):
        raise InvalidResultsError(line, key, "is infinite")
    return None if math.isnan(number) else number


def _moment(line: int, text: Any) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except (TypeError, ValueError) as error:
        raise InvalidResultsError(
            line, TIME, f"{text!r} is not a time such as 2021-12-06 04:19:35"
        ) from error
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
