"""Spans of time as people type them in forms."""

from __future__ import annotations

import re
from datetime import timedelta

_UNITS = {"s": 1, "min": 60, "m": 60, "h": 3600, "d": 86400}
LONGEST = timedelta(days=31)


def parse_span(text: str) -> timedelta:
    """`5 min`, `1 h 30 min`, `90s`; ValueError saying what would be right."""
    parts = re.findall(r"(\d{1,7})\s*(s|min|m|h|d)\b", text.strip())
    if not parts or re.sub(r"(\d{1,7})\s*(s|min|m|h|d)\b", "", text).strip():
        raise ValueError("must be a duration such as 5 min, 1 h or 90 s")
    span = timedelta(seconds=sum(int(count) * _UNITS[unit] for count, unit in parts))
    if not timedelta(0) <= span <= LONGEST:
        raise ValueError(f"must be at most {LONGEST.days} days")
    return span
