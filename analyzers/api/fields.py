"""Spans of time as people write them."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from analyzers.runs.timing import parse_span, span_text


@extend_schema_field({"type": "string", "pattern": r"^\d{1,9}(ms|s|m|h|d)$", "example": "5m"})
class SpanField(serializers.Field[timedelta, Any, str, Any]):
    """`90s`, `5m`, `1h`, `30d`, as the command line has them."""

    def __init__(
        self, least: timedelta = timedelta(0), most: timedelta | None = None, **options: Any
    ) -> None:
        super().__init__(**options)
        self.least = least
        self.most = most

    def to_internal_value(self, data: Any) -> timedelta:
        try:
            span = parse_span(data if isinstance(data, str) else "")
        except ValueError:
            raise serializers.ValidationError("must be a span of time such as 90s, 5m, 1h or 30d") from None
        if span < self.least:
            raise serializers.ValidationError(f"must be at least {span_text(self.least)}")
        if self.most is not None and span > self.most:
            raise serializers.ValidationError(f"must be at most {span_text(self.most)}")
        return span

    def to_representation(self, value: timedelta) -> str:
        return span_text(value)
