"""The one strict reader of JSON bodies: what comes out has a bounded depth, only finite numbers and no odd texts. Pure.

Of a key that is given twice the last one counts (RFC 8259, 4, leaves it to the reader; most do it so). A text may
hold half a surrogate pair, which senders make by cutting a text within an emoji: it becomes U+FFFD, because an alert
is not lost for it.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ingest.integrations.normalized import InvalidPayloadError

DEEPEST = 64
"""Objects and arrays within each other. Whoever walks a body by recursion relies on it."""
LARGEST = 2**26
"""Bytes of a body of alerts, after decompression. A group of 50,000 alerts fits; each alert is bounded by itself."""
LARGEST_REQUEST = 2**20
"""Bytes of a body that a person or a program asks with, and of one that is read before its key is known."""

_DECODER = msgspec.json.Decoder()
_ESCAPES = re.compile(
    rb"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # a whole pair
    rb"|(\\u[dD][89a-fA-F][0-9a-fA-F]{2})"  # half of one
    rb"|\\."
)


def read(body: bytes, largest: int = LARGEST) -> Any:
    """The value of a body of JSON in UTF-8. Raises InvalidPayloadError, which says what is wrong and at which byte."""
    if len(body) > largest:
        raise InvalidPayloadError("", f"must be at most {largest} bytes, not {len(body)}")
    body = body.removeprefix(b"\xef\xbb\xbf")
    if not body.strip():
        raise InvalidPayloadError("", "is empty; it must be JSON")
    value = _decoded(body)
    if _deeper_than(value, DEEPEST):
        raise _too_deep()
    return value


def read_object(body: bytes, largest: int = LARGEST) -> dict[str, Any]:
    """As `read`, for a body that must be an object."""
    value = read(body, largest)
    if not isinstance(value, dict):
        raise InvalidPayloadError("", f"must be a JSON object, not {called(value)}")
    return value


def called(value: object) -> str:
    """JSON's name of a value's type, for messages."""
    match value:
        case None:
            return "null"
        case bool():
            return "a boolean"
        case int() | float():
            return "a number"
        case str():
            return "a text"
        case list():
            return "an array"
    return "an object"


def _decoded(body: bytes) -> Any:
    try:
        return _DECODER.decode(body)
    except RecursionError:
        raise _too_deep() from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        whole = _ESCAPES.sub(lambda found: rb"\ufffd" if found[1] else found[0], body)
        if whole != body:
            return _decoded(whole)
        raise InvalidPayloadError("", f"is not JSON in UTF-8: {error}") from None


def _deeper_than(value: Any, deepest: int) -> bool:
    level = [value] if isinstance(value, (dict, list)) else []
    for _ in range(deepest + 1):
        if not level:
            return False
        level = [
            inner
            for outer in level
            for inner in (outer.values() if isinstance(outer, dict) else outer)
            if isinstance(inner, (dict, list))
        ]
    return True


def _too_deep() -> InvalidPayloadError:
    return InvalidPayloadError("", f"nests objects and arrays deeper than {DEEPEST}")


def leaves(value: Any, most: int = 200) -> dict[str, str]:
    """The texts, numbers and truths within a value by their dotted path, `disks[0].name`: the first `most` of them.

    Arrays of nothing but these are one entry, joined by commas. Null and empty texts are left out.
    """
    found: dict[str, str] = {}
    # A stack and not recursion, so that reading stops when enough was found.
    todo: list[tuple[str, Any]] = [("", value)]
    while todo and len(found) < most:
        path, value = todo.pop()
        if isinstance(value, dict):
            inner = [(f"{path}.{name}" if path else name, value[name]) for name in value]
            todo.extend(reversed(inner))
        elif isinstance(value, list) and any(isinstance(item, (dict, list)) for item in value):
            todo.extend(reversed([(f"{path}[{place}]", item) for place, item in enumerate(value)]))
        elif text := scalar(value):
            found[path] = text
    return found


def scalar(value: Any) -> str:
    """A value as a text: numbers and truths as JSON writes them, null as nothing, arrays of these joined by commas."""
    match value:
        case None:
            return ""
        case str():
            return value
        case bool():
            return "true" if value else "false"
        case int() | float():
            # As JSON, not as Python: a number of thousands of digits has no str().
            return msgspec.json.encode(value).decode()
        case list():
            return ", ".join(text for text in map(scalar, value) if text)
    return msgspec.json.encode(value).decode()
