"""From lists of values, one list a field, to checked `Rows`. Shared by the decoders."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
from msgspec import UNSET, UnsetType
from numpy.typing import NDArray

from ingest.telemetry.decode.columns import (
    Codes,
    Column,
    Index,
    Known,
    Names,
    Numbers,
    Rows,
    SetIndex,
    joined_numbers,
    numbers_of,
)
from ingest.telemetry.decode.ids import canonical_ids
from ingest.telemetry.decode.timestamps import times
from ingest.telemetry.decode.validate import NOT_FINITE, Bounds, bad_rows, unfit
from ingest.telemetry.errors import MOST_NAMED, BadRow, InvalidRowsError, NoRowsError
from ingest.telemetry.kinds import Field, Kind

NAMED = ("name", "component", "text", "choice", "id", "labels", "measures")
"""Types whose columns are `Names`."""
_ABSENT = {UnsetType, type(None)}
KNOWN_BY_TYPE = ("name", "component", "text")
"""Types whose values are good or bad by themselves, so that what was good in one field is good in all of its type."""
KnownTexts = Mapping[str, Mapping[str, int]]
"""By type the numbers of texts that were checked and stored before."""
NONE_KNOWN: KnownTexts = MappingProxyType({})
Part = Codes | Known | Numbers | NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]


class UnknownTextError(Exception):
    """Rows hold a text that is not known, and rows before them were read as if all were: read again without."""


@dataclass
class Assembly:
    """Takes rows in parts and makes one `Rows` of them; names and sets are numbered across the parts.

    A text of `known`, such as a name that comes every minute, is looked for once and not checked again: a column of
    nothing else is `Known`, and no `Names`.
    """

    kind: Kind
    region: str
    known: KnownTexts = field(default_factory=dict)
    as_known: dict[str, bool] = field(default_factory=dict)
    indexes: dict[str, Index] = field(default_factory=dict)
    set_indexes: dict[str, SetIndex] = field(default_factory=dict)
    parts: list[dict[str, Part]] = field(default_factory=list)
    numbers: list[NDArray[np.int64]] = field(default_factory=list)
    bad: list[BadRow] = field(default_factory=list)

    def __post_init__(self) -> None:
        for each in self.kind.all_fields:
            if each.type == "components":
                self.set_indexes[each.name] = SetIndex()
            elif each.type in NAMED:
                self.indexes[each.name] = Index()

    def default(self, each: Field) -> Any:
        if each.name == "region":
            return self.region
        return () if each.type in ("components", "numbers") else each.default

    def add(self, values: Mapping[str, Sequence[Any]], numbers: NDArray[np.int64]) -> None:
        """Values as decoded from JSON: texts, lists, numbers; UNSET or None where an optional field is
        absent.

        Raises OverflowError for integers beyond 64 bits, msgspec.ValidationError for a text that is no time.
        """
        self.add_columns(
            {each.name: self.column(each, values[each.name]) for each in self.kind.all_fields}, numbers
        )

    def add_columns(self, columns: dict[str, Part], numbers: NDArray[np.int64]) -> None:
        self.parts.append(columns)
        self.numbers.append(numbers)

    def column(self, each: Field, values: Sequence[Any]) -> Part:
        if each.optional and (absent := set(map(type, values)) & _ABSENT):
            if absent == {UnsetType} and values.count(UNSET) == len(values):
                return self.constant(each, len(values))
            if each.type == "time":
                return self._some_times(each, values)
            values = self._filled(each, values)
        match each.type:
            case "time":
                return times(values)
            case "count":
                return np.fromiter(values, np.int64, len(values))
            case "amount":
                return np.fromiter(values, np.float64, len(values)) + 0.0  # no negative zero
            case "flag":
                return np.fromiter(values, np.bool_, len(values))
            case "components":
                return self.set_indexes[each.name].codes(values)
            case "numbers":
                return numbers_of(values)
            case "labels" | "measures":
                values = [v if isinstance(v, str) else canonical_json(v) for v in values]
            case "id":
                values = canonical_ids(values)
        return self.texts(each, values)

    def texts(self, each: Field, values: Sequence[str]) -> Codes | Known:
        """Raises UnknownTextError when the column began as known texts and does not go on so."""
        known = self.known.get(each.type) if each.type in KNOWN_BY_TYPE and each.name != "region" else None
        if known and self.as_known.get(each.name, True):
            with suppress(KeyError):
                ids = np.fromiter(map(known.__getitem__, values), np.int32, len(values))
                self.as_known[each.name] = True
                return Known(ids)
        return self._index(each).codes(values)

    def _index(self, each: Field) -> Index:
        if self.as_known.setdefault(each.name, False):
            raise UnknownTextError
        return self.indexes[each.name]

    def constant(self, each: Field, rows: int) -> Part:
        """The column of an optional field that no row has."""
        default = self.default(each)
        if each.type == "components":
            return np.full(rows, self.set_indexes[each.name][default], np.int32)
        if each.name in self.indexes:
            return np.full(rows, self._index(each)[default], np.int32)
        if each.type == "numbers":
            return numbers_of([default] * rows)
        return np.full(rows, default)

    def _some_times(self, each: Field, values: Sequence[Any]) -> Part:
        there = np.fromiter(
            (value is not UNSET and value is not None for value in values), np.bool_, len(values)
        )
        found = np.full(len(values), self.default(each), np.int64)
        found[there] = times([value for value, known in zip(values, there.tolist(), strict=True) if known])
        return found

    def _filled(self, each: Field, values: Sequence[Any]) -> Sequence[Any]:
        default = self.default(each)
        return [default if value is UNSET or value is None else value for value in values]

    def refuse(self, row: int, where: str, reason: str) -> None:
        self.bad.append(BadRow(row, where, reason))

    @property
    def full(self) -> bool:
        """Whether no more bad rows need to be found."""
        return len(self.bad) >= MOST_NAMED

    def rows(self, bounds: Bounds) -> Rows:
        """All parts as one, checked. Raises InvalidRowsError with the first bad rows, NoRowsError when there is no
        row at all."""
        if not any(map(len, self.numbers)) and not self.bad:
            raise NoRowsError
        rows = self._joined() if self.parts else None
        found = self.bad
        if rows is not None:
            numbers = self.numbers[0] if len(self.numbers) == 1 else np.concatenate(self.numbers)
            found = found + bad_rows(self.kind, rows.columns, bounds, numbers)
        if found:
            raise InvalidRowsError(sorted(set(found))[:MOST_NAMED])
        assert rows is not None
        return rows

    def fit_rows(self, bounds: Bounds) -> tuple[Rows, list[tuple[NDArray[np.intp], str]]]:
        """All parts as one, and which rows of it are bad (indices from 0) and why, see `unfit`."""
        rows = self._joined() if self.parts else no_rows(self.kind, self.region)
        return rows, unfit(self.kind, rows.columns, bounds)

    def _joined(self) -> Rows:
        columns: dict[str, Column] = {}
        for each in self.kind.all_fields:
            parts: list[Any] = [part[each.name] for part in self.parts]
            if each.type == "numbers":
                columns[each.name] = joined_numbers(parts)
                continue
            if isinstance(parts[0], Known):
                columns[each.name] = Known(np.concatenate([part.ids for part in parts]))
                continue
            joined: Any = parts[0] if len(parts) == 1 else np.concatenate(parts)
            if each.type == "components":
                columns[each.name] = self.set_indexes[each.name].column(joined.astype(np.int32, copy=False))
            elif each.name in self.indexes:
                columns[each.name] = Names(
                    joined.astype(np.int32, copy=False), tuple(self.indexes[each.name])
                )
            else:
                columns[each.name] = joined
        return Rows(self.kind, len(columns[self.kind.time]), columns)


def no_rows(kind: Kind, region: str) -> Rows:
    """Rows of which there are none."""
    assembly = Assembly(kind, region)
    assembly.add({each.name: () for each in kind.all_fields}, np.zeros(0, np.int64))
    return assembly._joined()


def canonical_json(values: Mapping[str, str | float]) -> str:
    """Labels or measures: keys sorted, no blanks; measures are floats, none of them a negative zero."""
    if any(isinstance(value, float) and not math.isfinite(value) for value in values.values()):
        return NOT_FINITE
    plain = {key: value if isinstance(value, str) else value + 0.0 for key, value in values.items()}
    return json.dumps(plain, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
