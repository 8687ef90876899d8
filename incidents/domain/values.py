"""Values of incidents, checked before they become a fact, and times as they stand in event bodies.

An event stays for ever, so nothing enters one that a page could not show or the log could not store: texts
are bounded, valid Unicode and free of control characters; numbers are finite. Times are RFC 3339, UTC, `Z`, with
microseconds where there are any.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, Literal, get_args
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from ingest.log.types import parse_rfc3339 as parse_rfc3339
from ingest.log.types import rfc3339 as rfc3339
from ingest.telemetry.kinds.declare import COMPONENT_FORM, is_component

Severity = Literal["critical", "error", "warning", "info"]
State = Literal["open", "acknowledged", "snoozed", "resolved"]
Json = Any

SEVERITIES: Final[tuple[Severity, ...]] = get_args(Severity)
STATES: Final[tuple[State, ...]] = get_args(State)

DEFAULT_SEVERITY: Final[Severity] = "warning"
TITLE_LIMIT: Final = 300
TEXT_LIMIT: Final = 20_000
NAME_LIMIT: Final = 255
LABELS_LIMIT: Final = 50
LINKS_LIMIT: Final = 50
ATTACHED_LIMIT: Final = 10
"""Links of one comment."""
EVIDENCE_LIMIT: Final = 20
EVIDENCE_BYTES: Final = 1_000_000
ROWS_LIMIT: Final = 1_000
COLUMNS_LIMIT: Final = 50
DEPTH_LIMIT: Final = 40

NO_CAUSE: Final = "none"
_CLASS = re.compile(r"[A-Za-z][A-Za-z0-9_.-]{0,62}")
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\u202a-\u202e\u2066-\u2069]")
"""With what turns the direction of the text after it (Unicode Annex 9), which would show a line backwards."""
_LINE_BREAK = re.compile(r"[\r\n\t\u2028\u2029]")


class InvalidValueError(Exception):
    """A value that no incident may hold: the field that is wrong and why."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"{field}: {reason}")
        self.field = field
        self.reason = reason


UNREADABLE: Final = (InvalidValueError, ValueError, OverflowError, ZoneInfoNotFoundError)
"""Errors raised by a row that was right when it was written and can no longer be read, or was written by other
hands."""


def check_text(field: str, text: object, limit: int = TEXT_LIMIT, *, blank: bool = True) -> str:
    """The text without surrounding white space. Line breaks and tabs are allowed."""
    if not isinstance(text, str):
        raise InvalidValueError(field, "must be a text")
    if len(text) > limit:
        raise InvalidValueError(field, f"must have at most {limit} characters, has {len(text)}")
    if _CONTROL.search(text):
        raise InvalidValueError(field, "must not contain control characters")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InvalidValueError(field, "must be valid Unicode (it has a lone surrogate)") from None
    text = text.strip()
    if not text and not blank:
        raise InvalidValueError(field, "must not be empty")
    return text


def check_line(field: str, text: object, limit: int = NAME_LIMIT, *, blank: bool = False) -> str:
    """A text that stands on one line."""
    line = check_text(field, text, limit, blank=blank)
    if _LINE_BREAK.search(line):
        raise InvalidValueError(field, "must be one line")
    return line


def check_component(field: str, text: object) -> str:
    component = check_line(field, text)
    if not is_component(component):
        raise InvalidValueError(field, f"must be {COMPONENT_FORM}")
    return component


def check_cause(field: str, text: object) -> str:
    """A component, a class of causes where no single component was at fault, or NO_CAUSE. Classes are in lower case."""
    cause = check_line(field, text)
    if is_component(cause):
        return cause
    if _CLASS.fullmatch(cause) is None:
        raise InvalidValueError(
            field, f"must be {COMPONENT_FORM}, a class of causes in one word, as firmware, or none"
        )
    return cause.lower()


def is_class(cause: str) -> bool:
    """Whether a confirmed cause says what kind of thing was at fault, and not which component."""
    return cause != NO_CAUSE and not is_component(cause)


def check_severity(field: str, text: object) -> Severity:
    for severity in SEVERITIES:
        if text == severity:
            return severity
    raise InvalidValueError(field, f"must be one of {', '.join(SEVERITIES)}")


def is_worse(a: Severity, b: Severity) -> bool:
    return SEVERITIES.index(a) < SEVERITIES.index(b)


def check_object(
    field: str, value: object, known: Sequence[str], required: Sequence[str] = ()
) -> Mapping[str, Any]:
    """An object with no field but the known ones, and with the required ones."""
    if not isinstance(value, Mapping):
        raise InvalidValueError(field, f"must be an object with {', '.join(required or known)}")
    within = f"{field}." if field else ""
    for name in value:
        if name not in known:
            raise InvalidValueError(f"{within}{str(name)[:60]}", f"is not a field; use {', '.join(known)}")
    for name in required:
        if name not in value:
            raise InvalidValueError(f"{within}{name}", "is required")
    return value


def check_list(field: str, value: object, most: int, least: int = 0) -> Sequence[Any]:
    if not isinstance(value, list | tuple) or len(value) < least:
        span = f"{least} to {most}" if least else f"at most {most}"
        raise InvalidValueError(field, f"must be a list of {span} entries")
    if len(value) > most:
        raise InvalidValueError(field, f"must have at most {most} entries, has {len(value)}")
    return value


def check_whole(field: str, value: object, most: int, least: int = 0) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= most:
        raise InvalidValueError(field, f"must be a whole number from {least} to {most}")
    return value


def check_labels(field: str, labels: object) -> dict[str, str]:
    if not isinstance(labels, Mapping):
        raise InvalidValueError(field, "must be an object of texts")
    if len(labels) > LABELS_LIMIT:
        raise InvalidValueError(field, f"must have at most {LABELS_LIMIT} entries, has {len(labels)}")
    return {
        check_line(field, name): check_line(f"{field}.{name}", value, 1000, blank=True)
        for name, value in labels.items()
    }


def check_link(field: str, link: object) -> dict[str, str]:
    """`{"href": "https://…", "text": "…"}`. Only http and https: a link is something people click on."""
    given = check_object(field, link, ("href", "text"))
    href = check_line(f"{field}.href", given.get("href"), 2000)
    if not href.lower().startswith(("http://", "https://")) or " " in href:
        raise InvalidValueError(f"{field}.href", "must be an http or https address")
    return {"href": href, "text": check_line(f"{field}.text", given.get("text", ""), TITLE_LIMIT, blank=True)}


def check_links(field: str, links: object, limit: int = LINKS_LIMIT) -> list[dict[str, str]]:
    items = check_list(field, links, limit)
    return [check_link(f"{field}[{i}]", link) for i, link in enumerate(items)]


_EVIDENCE_FIELDS: Final = ("kind", "title", "columns", "rows", "chart", "text")


def check_evidence(field: str, evidence: object) -> list[dict[str, Json]]:
    """Items shaped as a verdict's evidence: a table, a Vega-Lite chart with its data inline, or a text."""
    items = check_list(field, evidence, EVIDENCE_LIMIT)
    checked = [_check_item(f"{field}[{i}]", item) for i, item in enumerate(items)]
    size = len(json.dumps(checked).encode())
    if size > EVIDENCE_BYTES:
        raise InvalidValueError(field, f"must have at most {EVIDENCE_BYTES} bytes as JSON, has {size}")
    return checked


def _check_item(field: str, value: object) -> dict[str, Json]:
    item = check_object(field, value, _EVIDENCE_FIELDS)
    if item.get("kind") not in ("table", "chart", "text"):
        raise InvalidValueError(f"{field}.kind", "must be table, chart or text")
    check_json(field, item)
    columns = [
        check_line(f"{field}.columns", c)
        for c in check_list(f"{field}.columns", item.get("columns", []), COLUMNS_LIMIT)
    ]
    chart = item.get("chart", {})
    if not isinstance(chart, Mapping) or (item["kind"] == "chart") != bool(chart):
        raise InvalidValueError(f"{field}.chart", "must be a Vega-Lite object, for charts only")
    _refuse_addresses(f"{field}.chart", chart)
    return {
        "kind": item["kind"],
        "title": check_line(f"{field}.title", item.get("title"), TITLE_LIMIT),
        "columns": columns,
        "rows": _check_rows(f"{field}.rows", item.get("rows", []), len(columns)),
        "chart": dict(chart),
        "text": check_text(f"{field}.text", item.get("text", "")),
    }


def _check_rows(field: str, rows: object, width: int) -> list[list[Json]]:
    checked = []
    for i, row in enumerate(check_list(field, rows, ROWS_LIMIT)):
        cells = check_list(f"{field}[{i}]", row, COLUMNS_LIMIT)
        if len(cells) != width:
            raise InvalidValueError(
                f"{field}[{i}]", f"must have one cell for each of the {width} columns, has {len(cells)}"
            )
        if any(isinstance(cell, Mapping | list) for cell in cells):
            raise InvalidValueError(f"{field}[{i}]", "must hold texts, numbers, booleans and nulls")
        checked.append(list(cells))
    return checked


def check_json(field: str, value: object, depth: int = 0) -> None:
    """Refuses what a JSON column cannot hold: NaN, infinities, NUL, lone surrogates, bottomless nesting."""
    if depth > DEPTH_LIMIT:
        raise InvalidValueError(field, f"must not be nested deeper than {DEPTH_LIMIT}")
    if isinstance(value, str):
        check_text(field, value, EVIDENCE_BYTES)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InvalidValueError(field, "must hold finite numbers")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            check_text(field, name, NAME_LIMIT)
            check_json(f"{field}.{name}"[:200], inner, depth + 1)
    elif isinstance(value, Sequence):
        for inner in value:
            check_json(field, inner, depth + 1)


def _refuse_addresses(field: str, value: object) -> None:
    """A chart carries its data inline: one that fetches would tell a stranger who looks at the incident."""
    if isinstance(value, Mapping):
        if isinstance(value.get("url"), str):
            raise InvalidValueError(field, "must carry its data inline, without url")
        for inner in value.values():
            _refuse_addresses(field, inner)
    elif isinstance(value, list):
        for inner in value:
            _refuse_addresses(field, inner)


class CommandRefusedError(Exception):
    """The command does not fit the state the incident is in; the reason is a sentence for whoever asked."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


# Times
# ----------------------------------------------------------------------------------------------------------
def optional_time(text: str | None) -> datetime | None:
    return None if text is None else parse_rfc3339(text)


def optional_rfc3339(moment: datetime | None) -> str | None:
    return None if moment is None else rfc3339(moment)


def read_zone(field: str, text: object) -> ZoneInfo:
    """An IANA time zone. Raises InvalidValueError."""
    name = check_line(field, text, 60)
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise InvalidValueError(
            field, f"{name!r} is not a time zone; use one such as Europe/Berlin or UTC"
        ) from None
