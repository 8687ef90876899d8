"""Requests of OTLP, small ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from ingest.integrations.otlp.messages import PROTOBUF, SIGNALS, SignalName, read
from ingest.telemetry.decode.columns import Bounds, Rows

NOW = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)
BOUNDS = Bounds.around(NOW, timedelta(days=30), timedelta(minutes=5))
AT = int(NOW.timestamp()) * 10**9


def attribute(container: Any, key: str, value: Any) -> None:
    told = container.add(key=key)
    match value:
        case bool():
            told.value.bool_value = value
        case int():
            told.value.int_value = value
        case float():
            told.value.double_value = value
        case bytes():
            told.value.bytes_value = value
        case list():
            for each in value:
                told.value.array_value.values.add(string_value=each)
        case _:
            told.value.string_value = value


def metrics(**resource: Any) -> tuple[Any, Any]:
    """A request for metrics, and the list that its metrics go to."""
    request: Any = SIGNALS["metrics"].request()
    told = request.resource_metrics.add()
    for key, value in (resource or {"service__name": "cart"}).items():
        attribute(told.resource.attributes, key.replace("__", "."), value)
    return request, told.scope_metrics.add().metrics


def gauge(value: float | None = 1.5, time: int = AT, name: str = "load", **attributes: Any) -> Any:
    request, told = metrics()
    point = told.add(name=name).gauge.data_points.add(time_unix_nano=time)
    if value is not None:
        point.as_double = value
    for key, each in attributes.items():
        attribute(point.attributes, key, each)
    return request


def reread(signal: SignalName, request: Any) -> Any:
    """The request as the endpoints get it."""
    return read(SIGNALS[signal], request.SerializeToString(), PROTOBUF)


def samples(rows: Rows) -> list[tuple[Any, ...]]:
    """Name, labels and value of each row."""
    values = np.asarray(rows.columns["value"]).tolist()
    return list(zip(rows.names("name"), rows.names("labels"), values, strict=True))
