"""What an analyzer asks of a window of telemetry, as data.

A reduction names the rows it reads, what they are grouped by and which sums are taken. It is declared beside the
analyzer that needs it and interpreted twice: in SQL by the window reader (`windows.py`) and in numpy by the offline
reader (`offline.py`). A property test holds the two equal. Importing this module imports neither Django nor numpy.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from ingest.telemetry.kinds.declare import STILL_GOING as STILL_GOING


@dataclass(frozen=True, slots=True)
class Count:
    """How many rows fall into the group."""


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a numeric field over the group."""

    field: str


@dataclass(frozen=True, slots=True)
class CountDistinct:
    """How many different values a field takes in the group, over rows where `where` (a numeric field) is above 0."""

    field: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class CountWitnesses:
    """How many different components of the reduction's `witness_kinds` the group's rows name.

    Twenty units on one host that dies are one witness, not twenty. Rows without a witness component count none.
    Only rows where `where` (a numeric field) is above 0 are counted.
    """

    where: str | None = None


Aggregate = Count | Sum | CountDistinct | CountWitnesses


@dataclass(frozen=True, slots=True)
class AsOf:
    """Join each row to the row of a state kind that was in force for the same key at the window's start.

    A row without such a state row is left out of the sums and counted in `Sums.unmatched`.
    """

    kind: str
    key: str


@dataclass(frozen=True, slots=True)
class Each:
    """One row for every number of a `numbers` field, in place of the row that holds the list.

    With `edges`, ascending, the key `bin` says where a number lies: 0 below `edges[0]`, i from `edges[i - 1]` up to
    but not including `edges[i]`, `len(edges)` from the last edge on. Without, the key `value` is the number itself, so
    that counts over it are the exact sample. Other fields belong to every number of their row alike.
    """

    field: str
    edges: tuple[float, ...] = ()

    @property
    def key(self) -> str:
        return "bin" if self.edges else "value"


@dataclass(frozen=True, slots=True)
class Reduction:
    """One table of sums over one window.

    `kind` is a telemetry kind. For a state kind (one whose rows hold "from `time` on", such as `placement`) the rows
    are those in force at the window's start, with `or_within` also, for keys that have none, the first that came into
    force before its end, or with `changes` all with `start <= time < end`, those that end a state included; for a kind
    of intervals (such as `outage`), those that overlap the window, not clipped, each as it was last told of; for the
    others, those with `start <= time < end`.
    `group_by` lists fields of the kind or of the joined `as_of` kind, of any type but lists of numbers. Grouping by a
    `components` field takes the set of components without those of `witness_kinds`. `slice` adds the key `slice`: the
    index of the slice of that length, counted from the window's start. `each` takes lists of numbers apart. `where`
    keeps only rows where that numeric field is above 0, `only` those whose choice field has one of the values.
    """

    name: str
    kind: str
    group_by: tuple[str, ...]
    aggregates: Mapping[str, Aggregate]
    as_of: AsOf | None = None
    witness_kinds: tuple[str, ...] = ()
    slice: timedelta | None = None
    where: str | None = None
    each: Each | None = None
    or_within: bool = False
    only: tuple[str, tuple[str, ...]] | None = None
    changes: bool = False

    @property
    def kinds(self) -> tuple[str, ...]:
        return (self.kind,) if self.as_of is None else (self.kind, self.as_of.kind)


@dataclass(frozen=True, slots=True, eq=False)
class Paths:
    """A sequence of component sets in compressed sparse row form.

    Set `i` holds `names[indices[indptr[i]:indptr[i + 1]]]`; `indices` ascend within a set and `names` are sorted.
    `indptr` has shape (rows + 1,), int64; `indices` has shape (entries,), int32.
    """

    names: tuple[str, ...]
    indptr: NDArray[np.int64]
    indices: NDArray[np.int32]

    def __len__(self) -> int:
        return len(self.indptr) - 1

    def __getitem__(self, row: int) -> tuple[str, ...]:
        return tuple(self.names[i] for i in self.indices[self.indptr[row] : self.indptr[row + 1]])


@dataclass(frozen=True, slots=True, eq=False)
class Sums:
    """What a reduction found: row r has the keys `keys[k][r]` and the sums `values[a][r]`.

    Rows are in ascending order of their keys (component sets compare as sorted tuples of names), so that the same
    telemetry gives the same table whatever order it arrived in. `keys` holds `Paths` for component sets, int64 arrays
    for `slice`, `bin`, times (microseconds since 1970; `STILL_GOING` where an interval has no end yet), counts and
    flags (0 or 1), float64 arrays for amounts and `value`, and tuples of strings otherwise. `values` hold int64 or
    float64 arrays of shape (rows,).
    """

    keys: Mapping[str, Paths | Sequence[str] | NDArray[np.int64] | NDArray[np.float64]]
    values: Mapping[str, NDArray[np.int64] | NDArray[np.float64]]
    rows: int
    unmatched: int = 0
    """Rows that had no `as_of` partner (say failures of units that were placed nowhere)."""
    later: int = 0
    """States that came into force only after the window's start; counted where a reduction says `or_within`."""


@dataclass(frozen=True, slots=True)
class Input:
    """One way to feed an analyzer: a name and the reductions that must be present together."""

    name: str
    reductions: tuple[Reduction, ...]
    kinds: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        if not isinstance(self.reductions, tuple):
            raise TypeError(f"reductions of input {self.name} must be a tuple, such as (PATHS,)")
        kinds = dict.fromkeys(kind for reduction in self.reductions for kind in reduction.kinds)
        object.__setattr__(self, "kinds", tuple(kinds))
