"""Matchers as people and `amtool` write them: `disk=~"d.*"`, several parted by commas or lines. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from incidents.domain.suppression.silences import Matcher
from incidents.domain.values import InvalidValueError

LONGEST = 20_000
"""Characters of a text with matchers."""
EXAMPLE = 'disk=~"d.*"'
_MATCHER = re.compile(
    r'\s*(?:"((?:[^"\\]|\\.)+)"|([^=!~\s",]+))\s*(=~|!~|!=|=)\s*(?:"((?:[^"\\]|\\.)*)"|([^",\n]*))\s*',
    re.DOTALL,
)
_SIGNS = {"=": (False, True), "!=": (False, False), "=~": (True, True), "!~": (True, False)}


def read_matchers(text: str) -> list[dict[str, Any]]:
    """Matchers as `silencing.matchers_from` takes them. Braces around them may stand. Raises InvalidValueError."""
    if len(text) > LONGEST:
        raise InvalidValueError("matchers", f"must be at most {LONGEST} characters, not {len(text)}")
    rest = text.strip()
    if rest.startswith("{") and rest.endswith("}"):
        rest = rest[1:-1]
    found = []
    while rest := rest.lstrip(", \t\r\n"):
        one = _MATCHER.match(rest)
        after = rest[one.end() :] if one else ""
        # A matcher on a line of its own needs no comma.
        if one is None or (after and after[0] != "," and "\n" not in one[0][len(one[0].rstrip()) :]):
            raise InvalidValueError("matchers", f"must be such as {EXAMPLE}, not {rest[:60]!r}")
        is_regex, is_equal = _SIGNS[one[3]]
        value = one[5].strip() if one[4] is None else _unquoted(one[4])
        name = one[2] if one[1] is None else _unquoted(one[1])
        found.append({"name": name, "value": value, "isRegex": is_regex, "isEqual": is_equal})
        rest = after
    if not found:
        raise InvalidValueError("matchers", f"are missing; write one or more, such as {EXAMPLE}")
    return found


def write_matchers(matchers: Iterable[Matcher]) -> str:
    """One a line, as `read_matchers` reads them."""
    return "\n".join(map(str, matchers))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", lambda found: "\n" if found[1] == "n" else found[1], text, flags=re.DOTALL)
