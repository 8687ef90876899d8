"""Faults of a body of telemetry."""

from __future__ import annotations

from dataclasses import dataclass

MOST_NAMED = 20
"""Number of bad rows that an answer names."""


@dataclass(frozen=True, slots=True, order=True)
class BadRow:
    """Row `row` (from 1; of NDJSON the line) is refused because of `field` (empty: the row as a whole)."""

    row: int
    field: str
    reason: str

    def __str__(self) -> str:
        return (
            f"row {self.row}, {self.field}: {self.reason}" if self.field else f"row {self.row}: {self.reason}"
        )


class InvalidRowsError(ValueError):
    """The first bad rows of a body, in order."""

    def __init__(self, rows: list[BadRow]) -> None:
        super().__init__("; ".join(map(str, rows)))
        self.rows = rows


class InvalidBodyError(ValueError):
    """The body cannot be read at all."""


class NoRowsError(InvalidBodyError):
    """Nothing is wrong with the body, but it has no rows."""

    def __init__(self) -> None:
        super().__init__("the body holds no rows")


class BodyTooLargeError(ValueError):
    """The body is larger than is taken, as sent or after decompression."""
