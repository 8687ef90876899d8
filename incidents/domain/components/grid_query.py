"""Query of a grid's address. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final, Literal, get_args

from incidents.domain.values import InvalidValueError, check_component, check_line, parse_rfc3339

WINDOWS: Final = (5, 15, 60, 360, 1440)
"""Minutes of a step."""
STEPS: Final = (1, 24)
"""Fewest and most steps."""
USUAL_WINDOW, USUAL_STEPS = 60, 12
MOST_WITHIN = 8
PARAMETERS: Final = ("region", "telemetry", "rows", "columns", "window", "steps", "end", "at")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
Source = Literal["placement", "path_outcome"]


@dataclass(frozen=True, slots=True)
class GridQuery:
    """Empty and None: whatever is usual. `end` is the end of the last step, `at` a time within the one to show;
    `within` are the components that were drilled into, outermost first."""

    region: str = ""
    source: Source | None = None
    rows: str = ""
    columns: str = ""
    within: tuple[str, ...] = ()
    window: timedelta = timedelta(minutes=USUAL_WINDOW)
    steps: int = USUAL_STEPS
    end: datetime | None = None
    at: datetime | None = None


def grid_query_from(given: Mapping[str, str], within: Sequence[str]) -> GridQuery:
    """Out of a query; `within` stands in it once for each component. Raises InvalidValueError."""
    if len(within) > MOST_WITHIN:
        raise InvalidValueError("within", f"must be at most {MOST_WITHIN} components")
    window = _number("window", given.get("window", ""), USUAL_WINDOW)
    if window not in WINDOWS:
        raise InvalidValueError("window", f"must be one of {', '.join(map(str, WINDOWS))} minutes")
    steps = _number("steps", given.get("steps", ""), USUAL_STEPS)
    if not STEPS[0] <= steps <= STEPS[1]:
        raise InvalidValueError("steps", f"must be {STEPS[0]} to {STEPS[1]}")
    return GridQuery(
        region=check_line("region", given.get("region", ""), blank=True),
        source=_source(given.get("telemetry", "")),
        rows=_kind("rows", given.get("rows", "")),
        columns=_kind("columns", given.get("columns", "")),
        within=tuple(check_component("within", one) for one in within),
        window=timedelta(minutes=window),
        steps=steps,
        end=_time("end", given.get("end", "")),
        at=_time("at", given.get("at", "")),
    )


def _source(text: str) -> Source | None:
    for source in get_args(Source):
        if text == source:
            return source  # type: ignore[no-any-return]
    if text:
        raise InvalidValueError("telemetry", "must be placement or path_outcome")
    return None


def _kind(field: str, text: str) -> str:
    if text and not _KIND.fullmatch(text):
        raise InvalidValueError(field, "must be a kind of component, such as storage_cluster")
    return text


def _number(field: str, text: str, usual: int) -> int:
    if not text:
        return usual
    if not (text.isascii() and text.isdecimal() and len(text) <= 6):
        raise InvalidValueError(field, "must be a whole number")
    return int(text)


def _time(field: str, text: str) -> datetime | None:
    if not text:
        return None
    try:
        # An offset's plus that was not percent-encoded arrives as a space.
        found = parse_rfc3339(text.replace(" ", "+"))
    except (ValueError, OverflowError):
        reason = "must be an RFC 3339 time with an offset, such as 2026-11-21T10:00:00Z"
        raise InvalidValueError(field, reason) from None
    if not 1971 <= found.year <= 9990:
        raise InvalidValueError(field, "is out of range")
    return found
