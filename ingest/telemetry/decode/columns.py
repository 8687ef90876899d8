"""Rows of a kind as columns, and the checks that they pass. Numbers are arrays; texts and component sets are codes into
the distinct ones, or the numbers that the database knows them by.

Every decoder makes this form, and storage and the offline reader take it. Pure: numpy only."""

from __future__ import annotations

import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from ingest.telemetry.errors import MOST_NAMED, BadRow
from ingest.telemetry.kinds import After, AtMost, Check, Field, Kind, NoMoreThan
from ingest.telemetry.kinds.declare import (
    COMPONENT,
    COMPONENT_FORM,
    MAX_COMPONENTS,
    MAX_COUNT,
    MAX_LABELS,
    MAX_NUMBERS,
    MAX_TEXT,
    STILL_GOING,
)

Codes = NDArray[np.int32]


@dataclass(frozen=True, slots=True, eq=False)
class Names:
    """A column of texts: row r holds `names[codes[r]]`. `names` are distinct; some may be used by no row."""

    codes: Codes
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Names:
        return Names(self.codes[rows], self.names)

    def used(self) -> Names:
        """The same column without the names that no row holds."""
        used, codes = np.unique(self.codes, return_inverse=True)
        return Names(codes.astype(np.int32), tuple(self.names[code] for code in used.tolist()))

    def __iter__(self) -> Iterator[str]:
        return (self.names[code] for code in self.codes)


@dataclass(frozen=True, slots=True, eq=False)
class Known:
    """A column of texts that were met before: row r holds the text whose number in the database is `ids[r]`."""

    ids: Codes

    def __len__(self) -> int:
        return len(self.ids)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Known:
        return Known(self.ids[rows])


@dataclass(frozen=True, slots=True, eq=False)
class Sets:
    """A column of component sets: row r holds set `codes[r]`.

    Set s holds `names[indices[indptr[s]:indptr[s + 1]]]`, indices ascending. Sets and names are distinct.
    """

    codes: Codes
    indptr: NDArray[np.int64]
    indices: Codes
    names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.codes)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of members of each set, shape (sets,)."""
        return np.diff(self.indptr)

    def members(self, code: int) -> tuple[str, ...]:
        return tuple(self.names[i] for i in self.indices[self.indptr[code] : self.indptr[code + 1]])

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Sets:
        return Sets(self.codes[rows], self.indptr, self.indices, self.names)


@dataclass(frozen=True, slots=True, eq=False)
class Numbers:
    """A column of lists of numbers: row r holds `values[indptr[r]:indptr[r + 1]]`.

    `indptr` has shape (rows + 1,), int64; `values` has shape (numbers,), float64.
    """

    indptr: NDArray[np.int64]
    values: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Number of numbers of each row, shape (rows,)."""
        return np.diff(self.indptr)

    @property
    def owners(self) -> NDArray[np.intp]:
        """The row of each number, shape (numbers,)."""
        return np.repeat(np.arange(len(self)), self.sizes)

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Numbers:
        chosen = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        sizes = self.sizes[chosen]
        indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
        places = np.arange(indptr[-1]) + np.repeat(self.indptr[:-1][chosen] - indptr[:-1], sizes)
        return Numbers(indptr, self.values[places])

    def __getitem__(self, rows: slice) -> Numbers:
        start, end, _ = rows.indices(len(self))
        bounds = self.indptr[start : max(start, end) + 1]
        return Numbers(bounds - bounds[0], self.values[bounds[0] : bounds[-1]])


def numbers_of(lists: Sequence[Sequence[float]]) -> Numbers:
    """Lists of numbers as a column; negative zeros become zeros."""
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum([len(one) for one in lists], dtype=np.int64)))
    flat = itertools.chain.from_iterable(lists)
    return Numbers(indptr, np.fromiter(flat, np.float64, int(indptr[-1])) + 0.0)


def joined_numbers(parts: Sequence[Numbers]) -> Numbers:
    """Columns one after the other."""
    if len(parts) == 1:
        return parts[0]
    sizes = np.concatenate([part.sizes for part in parts])
    indptr = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))
    return Numbers(indptr, np.concatenate([part.values for part in parts]))


Column = Names | Known | Sets | Numbers | NDArray[np.int64] | NDArray[np.float64] | NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Rows:
    """Checked rows of one kind; `columns` has one of `count` rows for every field, `region` too."""

    kind: Kind
    count: int
    columns: dict[str, Column]

    @property
    def times(self) -> NDArray[np.int64]:
        """Microseconds since 1970, shape (count,)."""
        times = self.columns[self.kind.time]
        assert isinstance(times, np.ndarray)
        return times.view(np.int64)

    @property
    def ends(self) -> NDArray[np.int64]:
        """Ends of the intervals (`STILL_GOING`: not yet), microseconds since 1970, shape (count,)."""
        assert self.kind.end is not None
        ends = self.columns[self.kind.end]
        assert isinstance(ends, np.ndarray)
        return ends.view(np.int64)

    @property
    def latest(self) -> NDArray[np.int64]:
        """The last moment that each row tells of: its time, or the end of its interval if that is known."""
        if not self.kind.is_interval:
            return self.times
        return np.where(self.ends == STILL_GOING, self.times, self.ends)

    def names(self, field: str) -> Names:
        column = self.columns[field]
        assert isinstance(column, Names)
        return column

    def take(self, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Rows:
        taken = {name: _take(column, rows) for name, column in self.columns.items()}
        return Rows(self.kind, len(taken[self.kind.time]), taken)


def _take(column: Column, rows: NDArray[np.intp] | NDArray[np.bool_]) -> Column:
    return column.take(rows) if isinstance(column, Names | Known | Sets | Numbers) else column[rows]


class Index(dict[str, int]):
    """Gives every new text the next number."""

    def __missing__(self, text: str) -> int:
        self[text] = number = len(self)
        return number

    def codes(self, texts: Sequence[str]) -> Codes:
        new: Collection[str] = dict.fromkeys(texts)
        if self:
            new = [text for text in new if text not in self]
        elif len(new) == len(texts):
            self.update(zip(new, range(len(new)), strict=True))
            return np.arange(len(new), dtype=np.int32)
        self.update(zip(new, itertools.count(len(self))))  # faster than one __missing__ each
        return np.fromiter(map(self.__getitem__, texts), np.int32, len(texts))


class SetIndex(dict[tuple[str, ...], int]):
    """Gives every new set of components the next number; a list in another order or with repetitions is the
    same."""

    def __init__(self) -> None:
        super().__init__()
        self.names = Index()
        self._numbers: dict[tuple[int, ...], int] = {}

    def __missing__(self, listed: tuple[str, ...]) -> int:
        self[listed] = number = self.number(self.names[name] for name in listed)
        return number

    def number(self, members: Iterable[int]) -> int:
        """The number of the set of those members (numbers of `names`)."""
        return self._numbers.setdefault(tuple(sorted(set(members))), len(self._numbers))

    def codes(self, lists: Sequence[Sequence[str]]) -> Codes:
        return np.fromiter(map(self.__getitem__, map(tuple, lists)), np.int32, len(lists))

    def column(self, codes: Codes) -> Sets:
        sizes = np.fromiter(map(len, self._numbers), np.int64, len(self._numbers))
        indptr = np.concatenate(([0], np.cumsum(sizes)))
        members = (member for numbers in self._numbers for member in numbers)
        return Sets(codes, indptr, np.fromiter(members, np.int32, int(indptr[-1])), tuple(self.names))


EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MICROSECOND = timedelta(microseconds=1)

_PRINTABLE = r"[^\x00-\x1f\x7f\ud800-\udfff]+"
_TEXT = r"[^\x00\ud800-\udfff]*"
_PATTERNS = {
    "component": (re.compile(COMPONENT), f"is not of the form {COMPONENT_FORM}"),
    "components": (re.compile(COMPONENT), f"is not of the form {COMPONENT_FORM}"),
    "name": (re.compile(_PRINTABLE), "is empty or holds control characters"),
    "text": (re.compile(_TEXT), "holds a NUL character or half a surrogate pair"),
    "labels": (re.compile(_TEXT), "holds a NUL character or half a surrogate pair"),
    "measures": (re.compile(_TEXT), "holds a NUL character or half a surrogate pair"),
}
_JSON = ("labels", "measures")
NOT_FINITE = "\0"
"""Stands for measures that JSON cannot hold."""
LONGEST = timedelta(days=3653)
"""Time before the oldest stored rows at which an interval may have begun, if it lasted until then."""
# All names at once, one a line: several times as fast as one by one.
_ALL_LINES = {
    type_: re.compile(rf"(?:{pattern.pattern}\n)*")
    for type_, (pattern, _) in _PATTERNS.items()
    if type_ != "text"
}

Fault = tuple[NDArray[np.bool_], str, str]  # which rows, field, reason


@dataclass(frozen=True, slots=True)
class Bounds:
    """The earliest and the latest `time` that is taken, microseconds since 1970, inclusive."""

    earliest: int = -(2**55)
    latest: int = 2**57

    @staticmethod
    def around(now: datetime, retention: timedelta, future: timedelta) -> Bounds:
        return Bounds(microseconds(now - retention), microseconds(now + future))


def microseconds(moment: datetime) -> int:
    return (moment - EPOCH) // MICROSECOND


def moment(at: int) -> datetime:
    return EPOCH + timedelta(microseconds=at)


def bad_rows(
    kind: Kind, columns: dict[str, Column], bounds: Bounds, numbers: NDArray[np.int64] | None = None
) -> list[BadRow]:
    """The first bad rows in order; `numbers` are the rows' numbers, default 1, 2, 3, …"""
    found: list[BadRow] = []
    for which, field, reason in _faults(kind, columns, bounds):
        rows = np.flatnonzero(which)[:MOST_NAMED]
        named = rows + 1 if numbers is None else numbers[rows]
        found += [BadRow(int(row), field, reason) for row in named]
    return sorted(found)[:MOST_NAMED]


def unfit(kind: Kind, columns: dict[str, Column], bounds: Bounds) -> list[tuple[NDArray[np.intp], str]]:
    """Every bad row, for senders whose answer counts refused rows: row indices from 0 and why.

    Reasons do not quote what is wrong, so that there are few of them.
    """
    found = (
        (np.flatnonzero(which), f"{field} {reason}")
        for which, field, reason in _faults(kind, columns, bounds, quoting=False)
    )
    return [(rows, reason) for rows, reason in found if len(rows)]


def _faults(
    kind: Kind, columns: dict[str, Column], bounds: Bounds, *, quoting: bool = True
) -> Iterator[Fault]:
    """Quoting what is wrong, a column names the first of many; not quoting, it leaves none out."""
    begins = {check.other for check in kind.checks if isinstance(check, After)}
    for field in kind.all_fields:
        column = columns[field.name]
        if isinstance(column, Names):
            yield from _text_faults(field, column, quoting)
        elif isinstance(column, Sets):
            yield from _set_faults(field, column, quoting)
        elif isinstance(column, Numbers):
            yield from _numbers_faults(field, column)
        elif field.name in begins:
            # Long before what is kept is well, if the end is not; but not so long that the unit must be wrong.
            began = Bounds(bounds.earliest - LONGEST // MICROSECOND, bounds.latest)
            yield from _number_faults(field, column, began)
        else:
            yield from _number_faults(field, column, bounds)
    for check in kind.checks:
        yield _broken(check, columns)


def _broken(check: Check, columns: dict[str, Column]) -> Fault:
    if isinstance(check, AtMost):
        other = np.asarray(columns[check.other])
        above = np.asarray(columns[check.field]) > other
        if check.where_given:
            above &= other > 0
        return above, check.field, f"is more than {check.other}"
    if isinstance(check, After):
        early = np.asarray(columns[check.field]) <= np.asarray(columns[check.other])
        return early, check.field, f"is not later than {check.other}"
    column = columns[check.field]
    if isinstance(check, NoMoreThan):
        assert isinstance(column, Numbers)
        return (
            column.sizes > np.asarray(columns[check.other]),
            check.field,
            f"has more numbers than {check.other} says",
        )
    assert isinstance(column, Sets)
    empty = (column.sizes == 0)[column.codes] & np.asarray(columns[check.flag])
    return empty, check.field, f"is empty although {check.flag} is true"


def _number_faults(field: Field, column: Column, bounds: Bounds) -> Iterator[Fault]:
    numbers = np.asarray(column)
    if field.type == "time":
        yield from _time_faults(field, numbers, bounds)
    elif field.type == "count":
        if int(numbers.min(initial=field.low)) < field.low:
            yield numbers < field.low, field.name, f"is below {field.low}"
        if int(numbers.max(initial=0)) > MAX_COUNT:
            yield numbers > MAX_COUNT, field.name, f"is above {MAX_COUNT}"
    elif field.type == "amount":
        yield ~np.isfinite(numbers), field.name, "is not a finite number"
        if not field.signed:
            yield numbers < 0, field.name, "is below 0"
        if field.high is not None:
            yield numbers > field.high, field.name, f"is above {field.high:g}"


def _numbers_faults(field: Field, column: Numbers) -> Iterator[Fault]:
    sizes, values = column.sizes, column.values
    if not field.may_be_empty and (sizes == 0).any():
        yield sizes == 0, field.name, "is empty"
    if (sizes > MAX_NUMBERS).any():
        yield sizes > MAX_NUMBERS, field.name, f"has more than {MAX_NUMBERS} numbers"
    for wrong, reason in (
        (~np.isfinite(values), "holds a number that is not finite"),
        (np.isfinite(values) & (values < 0) & (not field.signed), "holds a number below 0"),
    ):
        if wrong.any():
            yield np.bincount(column.owners[wrong], minlength=len(column)) > 0, field.name, reason


def _time_faults(field: Field, times: NDArray[np.int64], bounds: Bounds) -> Iterator[Fault]:
    if field.optional:
        times = np.where(times == field.default, bounds.latest, times)
    if not len(times):
        return
    if int(times.max()) > bounds.latest:
        limit = _shown(bounds.latest)
        yield times > bounds.latest, field.name, f"lies in the future: later than {limit}"
    if int(times.min()) < bounds.earliest:
        reason = f"is older than what is kept: before {_shown(bounds.earliest)}"
        if int(times.min()) < 10**12:  # seconds or milliseconds, taken for nanoseconds
            reason += " (integers are nanoseconds since 1970)"
        yield times < bounds.earliest, field.name, reason


def _shown(at: int) -> str:
    try:
        return moment(at).strftime("%Y-%m-%dT%H:%M:%SZ")
    except OverflowError:
        return "any time"


def _text_faults(field: Field, column: Names, quoting: bool) -> Iterator[Fault]:
    bad = _bad_names(field, column.names, quoting)
    for reason, codes in bad.items():
        yield np.isin(column.codes, codes), field.name, reason


def _set_faults(field: Field, column: Sets, quoting: bool) -> Iterator[Fault]:
    sizes = column.sizes
    if not field.may_be_empty and (sizes == 0).any():
        yield (sizes == 0)[column.codes], field.name, "is empty"
    if (sizes > MAX_COMPONENTS).any():
        yield (sizes > MAX_COMPONENTS)[column.codes], field.name, f"has more than {MAX_COMPONENTS} components"
    for reason, codes in _bad_names(field, column.names, quoting).items():
        entries = np.isin(column.indices, codes)
        counts = np.concatenate(([0], np.cumsum(entries)))
        bad_sets = counts[column.indptr[1:]] > counts[column.indptr[:-1]]
        yield bad_sets[column.codes], field.name, reason


def _bad_names(field: Field, names: tuple[str, ...], quoting: bool) -> dict[str, list[int]]:
    """Reasons, and the codes of the names that are refused for it."""
    limit = MAX_LABELS if field.type in _JSON else MAX_TEXT
    if field.type == "choice":
        return _bad_choices(field, names, quoting)
    if field.type == "id":  # canonical already; only what identifies nothing is wrong
        missing = not field.optional and "" in names
        return {"is empty or all zeros": [names.index("")]} if missing else {}
    if field.type in _ALL_LINES and _fine(field, names, limit):
        return {}
    pattern, complaint = _PATTERNS[field.type]
    bad: dict[str, list[int]] = {}
    for code, name in enumerate(names):
        if len(name) > limit or (field.type in _JSON and len(name.encode(errors="replace")) > limit):
            bad.setdefault(
                f"is longer than {limit} {'bytes' if field.type in _JSON else 'characters'}", []
            ).append(code)
        elif name == NOT_FINITE and field.type == "measures":
            bad["holds a number that is not finite"] = [code]
        elif not pattern.fullmatch(name):
            bad.setdefault(f"{name[:80]!r} {complaint}" if quoting else complaint, []).append(code)
            if len(bad) > MOST_NAMED:
                break
    return bad


def _bad_choices(field: Field, names: tuple[str, ...], quoting: bool) -> dict[str, list[int]]:
    allowed = {*field.choices, field.default} if field.optional else set(field.choices)
    wanted = f"is not {field.either}"
    wrong = [code for code, name in enumerate(names) if name not in allowed]
    if not quoting:
        return {wanted: wrong} if wrong else {}
    return {f"{_shown_text(names[code])} {wanted}": [code] for code in wrong[:MOST_NAMED]}


def _shown_text(text: str) -> str:
    return repr(text[:80].encode(errors="replace").decode())


def _fine(field: Field, names: tuple[str, ...], limit: int) -> bool:
    """Whether all are good, at one go; False also when it takes a closer look to say."""
    lines = "\n".join((*names, ""))
    if lines.count("\n") != len(names) or max(map(len, names), default=0) > limit or field.type in _JSON:
        return False
    return _ALL_LINES[field.type].fullmatch(lines) is not None
