"""Faults of a value out of JSON, in words that its sender understands. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from ingest.telemetry.kinds import Field

_WANTED = {
    "time": "an RFC 3339 time with a zone, or integer nanoseconds since 1970",
    "components": "a list of components (kind/name)",
    "count": "an integer",
    "amount": "a number",
    "flag": "true or false",
    "labels": "an object of texts",
    "numbers": "a list of numbers",
    "measures": "an object of numbers",
}
_MEMBER = {"components": "a component", "numbers": "a number", "labels": "a text", "measures": "a number"}
_NAMES: tuple[tuple[type, str], ...] = (
    (bool, "true or false"),
    (int, "an integer"),
    (float, "a number with a fraction"),
    (str, "a text"),
    (list, "a list"),
    (dict, "an object"),
)


def fault(field: Field, value: Any, message: str) -> str:
    """Reason why a value is none of the field's type; `message` is what msgspec says of it."""
    wanted = field.either if field.choices else _WANTED.get(field.type, "a text")
    if isinstance(value, str) and field.type == "time":
        return f"{printable(value)[:60]!r} is not {wanted}"
    if "out of range" in message:
        return "is out of range"
    if field.type in ("components", "numbers") and isinstance(value, list):
        for place, wrong in _wrong(field, enumerate(value, 1)):
            return f"holds {called(wrong)} (item {place}), not {_MEMBER[field.type]}"
    if field.type in ("labels", "measures") and isinstance(value, dict):
        for key, wrong in _wrong(field, value.items()):
            return f"gives {printable(key)!r} as {called(wrong)}, not {_MEMBER[field.type]}"
    return f"is {called(value)}, not {wanted}"


def _wrong(field: Field, members: Iterable[tuple[Any, Any]]) -> Iterator[tuple[Any, Any]]:
    right: tuple[type, ...] = (int, float) if _MEMBER[field.type] == "a number" else (str,)
    return (one for one in members if not isinstance(one[1], right) or isinstance(one[1], bool))


def called(value: Any) -> str:
    """Sort of a value."""
    if value is None:
        return "null"
    return next((name for type_, name in _NAMES if isinstance(value, type_)), "something else")


def printable(name: str) -> str:
    """A text as an answer can hold it, cut at 100 characters."""
    return name[:100].encode(errors="replace").decode()
