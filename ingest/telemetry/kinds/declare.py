"""Parts of a telemetry kind. A kind is one declaration in one file of this package; the endpoint, the table, the
window reader, the offline reader and the docs follow from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal

FieldType = Literal[
    "time",
    "component",
    "name",
    "text",
    "choice",
    "id",
    "components",
    "count",
    "amount",
    "flag",
    "numbers",
    "labels",
    "measures",
]

MAX_TEXT = 512
"""Characters in a name or a text: what an index of Postgres holds in the worst case of UTF-8."""
MAX_LABELS = 2000
"""Bytes of the labels of one row, as JSON."""
MAX_COMPONENTS = 1000
MAX_COUNT = 2**31 - 1
MAX_NUMBERS = 10_000
STILL_GOING = 253_402_300_799_000_000
"""The end of an interval that has none yet: the year 9999 in microseconds since 1970."""

COMPONENT: Final = r"[A-Za-z][A-Za-z0-9_.-]{0,62}/[^\s\x00-\x1f\x7f\ud800-\udfff]{1,190}"
"""The form of a component's name, the same in every layer. `kind/name`: a kind of up to 63 letters, digits, `_`, `.`
and `-`; a name of up to 190 characters, no white space."""
COMPONENT_FORM: Final = "kind/name without white space, for example storage_cluster/s7"

_COMPONENT = re.compile(COMPONENT)
_DIGITS = re.compile(r"(\d+)")
_NAME = re.compile(r"[a-z][a-z0-9_]*")


def is_component(text: str) -> bool:
    return _COMPONENT.fullmatch(text) is not None


def natural(name: str) -> tuple[str | int, ...]:
    """A key that sorts names as people do: c2 before c10."""
    return tuple(int(part) if part.isdecimal() else part for part in _DIGITS.split(name))


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a row.

    | type | in a row | in a column |
    | --- | --- | --- |
    | `time` | RFC 3339, or integer nanoseconds since 1970 | int64 microseconds since 1970 |
    | `component` | text `kind/name` | names |
    | `name` | a non-empty text | names |
    | `text` | a text, may be empty | names |
    | `choice` | one of `choices` | names |
    | `id` | a text that names one thing that happened once | names |
    | `components` | list of `kind/name`, a set: order and repetition mean nothing | sets |
    | `count` | integer from `low` to 2^31 - 1 | int64 |
    | `amount` | finite number, from 0 unless `signed`, up to `high` | float64 |
    | `flag` | true or false | bool |
    | `numbers` | list of finite numbers, from 0 unless `signed` | numbers |
    | `labels` | object of texts | names, as canonical JSON |
    | `measures` | object of finite numbers | names, as canonical JSON |

    An `id` is kept as 128 bits and never numbered, because it would be a new name every time: hexadecimal
    digits (up to 32) as they are, shown with 16 digits where these are enough and with 32 otherwise; any other text as
    its BLAKE2b digest. An id of zeros is no id.

    An optional field that a row does not have (or has as null) takes `default`.
    """

    name: str
    type: FieldType
    help: str
    unit: str = ""
    optional: bool = False
    default: str | int | float | bool | None = None
    low: int = 0
    high: float | None = None
    may_be_empty: bool = False
    choices: tuple[str, ...] = ()
    signed: bool = False

    @property
    def either(self) -> str:
        """The choices as they stand in a sentence: `up or down`."""
        *others, last = self.choices
        return f"{', '.join(others)} or {last}" if others else last


@dataclass(frozen=True, slots=True)
class AtMost:
    """A check: in every row `field` is not above `other`; with `where_given`, in rows whose `other` is above 0."""

    field: str
    other: str
    where_given: bool = False


@dataclass(frozen=True, slots=True)
class NotEmptyWhile:
    """A check: where `flag` is true, the set `field` has members."""

    field: str
    flag: str


@dataclass(frozen=True, slots=True)
class After:
    """A check: in every row the time `field` is later than the time `other`."""

    field: str
    other: str


@dataclass(frozen=True, slots=True)
class NoMoreThan:
    """A check: in every row the list `field` has at most as many numbers as `other` counts."""

    field: str
    other: str


Check = AtMost | NotEmptyWhile | After | NoMoreThan


@dataclass(frozen=True, slots=True)
class Kind:
    """A telemetry kind. `key` makes it a state kind: a row says how `key` is from `time` on, until its next
    row.

    `key` and `end` make it a kind of intervals: `key` was so from the first field until `end`. Of two rows of
    one key and start, the one received last counts, so that an interval may be told of when it begins and again when
    it is over. An interval may have begun before what is kept (`check.LONGEST`), but not be over by then.

    A state kind may have a flag `active`; a row where it is false ends what was in force. Of two rows of one
    key at the same time, the one received last counts. Every kind also has `region`.

    `has_long_retention` is for kinds with few rows that are asked for by the month: they have a retention of their own.
    `ahead` is how far in the future a row may lie, for what is planned. Such rows do not move the clock of the data.
    """

    name: str
    help: str
    fields: tuple[Field, ...]
    checks: tuple[Check, ...] = ()
    key: str | None = None
    end: str | None = None
    has_long_retention: bool = False
    ahead: timedelta = timedelta(0)

    def __post_init__(self) -> None:
        names = [field.name for field in self.fields]
        if not all(_NAME.fullmatch(name) for name in (self.name, *names)) or len(set(names)) != len(names):
            raise ValueError(f"kind {self.name}: names are lower case and differ")
        if not self.fields or self.fields[0].type != "time":
            raise ValueError(f"kind {self.name}: the first field is its time")
        if self.key is not None and self.field(self.key).type not in ("component", "name"):
            raise ValueError(f"kind {self.name}: the key is a component or a name")
        for field in self.fields:
            if (field.type == "choice") != bool(field.choices):
                raise ValueError(f"kind {self.name}: choices are what a choice has, and nothing else")
        if self.end is not None and (self.key is None or self.field(self.end).type != "time"):
            raise ValueError(f"kind {self.name}: intervals have a key, and an end that is a time")

    @property
    def time(self) -> str:
        """The field that says when: the first."""
        return self.fields[0].name

    @property
    def is_state(self) -> bool:
        return self.key is not None and self.end is None

    @property
    def is_interval(self) -> bool:
        return self.end is not None

    @property
    def is_event(self) -> bool:
        """Whether each row says what happened at its time, and no more; such rows live in time partitions."""
        return self.key is None

    @property
    def all_fields(self) -> tuple[Field, ...]:
        """The fields, with those that every kind has."""
        return (*self.fields, REGION)

    def field(self, name: str) -> Field:
        """Raises KeyError for a field that the kind does not have."""
        for field in self.all_fields:
            if field.name == name:
                return field
        raise KeyError(f"kind {self.name} has no field {name}")

    def has(self, name: str) -> bool:
        return any(field.name == name for field in self.all_fields)


REGION = Field("region", "name", "region that the row belongs to (default: that of the key)", optional=True)
TIME = Field(
    "time", "time", "RFC 3339 with a zone, or integer nanoseconds since 1970; kept to the microsecond"
)
