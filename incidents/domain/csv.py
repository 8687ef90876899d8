"""CSV for spreadsheets, which carry out text that looks like a formula (OWASP, CSV Injection): such text is quoted."""

from __future__ import annotations

from typing import Any, Final

_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")


def inert(value: Any) -> Any:
    """The value; a text that a spreadsheet would carry out has a quote before it, which says that it is text."""
    return f"'{value}" if isinstance(value, str) and value.startswith(_FORMULA) else value
