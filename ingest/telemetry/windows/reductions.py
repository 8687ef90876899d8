"""Reads of an analyzer from a window of telemetry, as data, and the plan that readers make of them. Pure.

A reduction names the rows it reads, what they are grouped by and which sums are taken. It is declared beside the
analyzer that needs it and interpreted twice: in SQL by the window reader (`sql.py`) and in numpy by the offline
reader (`offline.py`). A property test holds the two equal. Importing this module imports neither Django nor numpy.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

from ingest.telemetry.kinds import KINDS, Field, Kind
from ingest.telemetry.kinds.declare import STILL_GOING as STILL_GOING


@dataclass(frozen=True, slots=True)
class Count:
    """Number of rows in the group."""


@dataclass(frozen=True, slots=True)
class Sum:
    """The sum of a numeric field over the group."""

    field: str


@dataclass(frozen=True, slots=True)
class CountDistinct:
    """Number of different values of a field in the group, over rows where `where` (a numeric field) is above 0."""

    field: str
    where: str | None = None


@dataclass(frozen=True, slots=True)
class CountWitnesses:
    """Number of different components of the reduction's `witness_kinds` that the group's rows name.

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
    """Result of a reduction: row r has the keys `keys[k][r]` and the sums `values[a][r]`.

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


# Plan
# ----------------------------------------------------------------------------------------------------------
# A reduction read against the kinds: which field belongs to which, and what has to be grouped. Both readers work in two
# steps. They first group by everything that the sums depend on (keys, slice, component set, values to be told apart);
# that is the `Partials`, with one row per unit and path at most, whatever the number of rows of telemetry. Then
# `sums.finish` takes witnesses out of the sets, groups again and counts.
NUMERIC = ("count", "amount")
NAMED = ("name", "component", "text", "choice", "id", "labels", "measures")
NUMBERED = ("time", "count", "amount", "flag")


@dataclass(frozen=True, slots=True)
class Plan:
    """`owners` says for every field used whether it is of the rows (`row`) or of the joined state
    (`state`)."""

    reduction: Reduction
    kind: Kind
    state: Kind | None
    owners: dict[str, str]
    named: tuple[str, ...]
    numbered: tuple[str, ...]
    set_field: str | None
    distinct: tuple[str, ...]
    flags: tuple[str, ...]
    sums: tuple[str, ...]

    def field(self, name: str) -> Field:
        owner = self.kind if self.owners[name] == "row" else self.state
        assert owner is not None
        return owner.field(name)


def plan(reduction: Reduction) -> Plan:
    """Raises ValueError for a reduction that does not fit its kinds."""
    kind = _kind(reduction, reduction.kind)
    state = _joined(reduction, kind)
    if not kind.is_event and reduction.slice is not None:
        raise ValueError(
            f"reduction {reduction.name}: only what happens at one time has slices, not {kind.name}"
        )
    if (reduction.or_within or reduction.changes) and not kind.is_state:
        raise ValueError(
            f"reduction {reduction.name}: only a state comes into force, which {kind.name} is not"
        )
    if reduction.or_within and reduction.changes:
        raise ValueError(f"reduction {reduction.name}: it is either of states or of their changes")
    owners: dict[str, str] = {}

    def find(name: str, *types: str) -> str:
        for owner, one in (("row", kind), ("state", state)):
            if one is not None and one.has(name):
                if types and one.field(name).type not in types:
                    break
                owners[name] = owner
                return name
        raise ValueError(_no_field(reduction, [kind] if state is None else [kind, state], name, types))

    for name in reduction.group_by:
        find(name, *NAMED, *NUMBERED, "components")
    _check_each(reduction, kind)
    aggregates = reduction.aggregates.values()
    distinct = [
        find(one.field, *NAMED, *NUMBERED, "components")
        for one in aggregates
        if isinstance(one, CountDistinct)
    ]
    sums = [find(one.field, *NUMERIC) for one in aggregates if isinstance(one, Sum)]
    flags = [
        find(one.where, *NUMERIC)
        for one in aggregates
        if isinstance(one, CountDistinct | CountWitnesses) and one.where is not None
    ]
    if reduction.where is not None:
        find(reduction.where, *NUMERIC)
    _check_only(reduction, kind)
    set_field = _set_field(reduction, kind, state)
    if set_field is not None:
        find(set_field)
    chosen = Plan(reduction, kind, state, owners, (), (), None, (), (), ())
    others = [name for name in reduction.group_by if name != set_field]
    named = tuple(name for name in others if chosen.field(name).type in NAMED)
    numbered = tuple(name for name in others if name not in named)
    return Plan(
        reduction, kind, state, owners, named, numbered, set_field,
        tuple(dict.fromkeys(distinct)), tuple(dict.fromkeys(flags)), tuple(dict.fromkeys(sums)),
    )  # fmt: skip


def _kind(reduction: Reduction, name: str) -> Kind:
    if name not in KINDS:
        raise ValueError(
            f"reduction {reduction.name}: there is no telemetry kind {name}{_meant(name, KINDS)}"
        )
    return KINDS[name]


def _no_field(reduction: Reduction, kinds: Sequence[Kind], name: str, types: Collection[str]) -> str:
    """The sentence for a field that does not exist, or cannot be used so, with those that can."""
    fields = [field for kind in kinds for field in kind.fields if not types or field.type in types]
    names = [field.name for field in fields]
    wanted = f" of type {' or '.join(types)}" if types and len(types) <= len(NUMERIC) else ""
    where = " and ".join(kind.name for kind in kinds)
    found = next((kind.field(name).type for kind in kinds if kind.has(name)), None)
    if found is not None:
        return (
            f"reduction {reduction.name}: field {name} of {where} has the type {found}, which cannot be used there;"
            f" possible fields: {', '.join(names) or 'none'}"
        )
    return (
        f"reduction {reduction.name}: {where} has no field {name}{wanted}{_meant(name, names)};"
        f" there are {', '.join(names) or 'none'}"
    )


def _meant(name: str, known: Iterable[str]) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f" (did you mean {near[0]}?)" if near else ""


def _joined(reduction: Reduction, kind: Kind) -> Kind | None:
    if reduction.as_of is None:
        return None
    state = _kind(reduction, reduction.as_of.kind)
    if (
        not state.is_state
        or state.key != reduction.as_of.key
        or not kind.has(reduction.as_of.key)
        or kind.is_state
    ):
        raise ValueError(f"reduction {reduction.name}: {kind.name} cannot be joined to {state.name}")
    return state


def _check_only(reduction: Reduction, kind: Kind) -> None:
    if reduction.only is None:
        return
    name, values = reduction.only
    if not kind.has(name) or kind.field(name).type != "choice":
        raise ValueError(f"reduction {reduction.name}: {kind.name} has no choice {name}")
    if not values or set(values) - set(kind.field(name).choices):
        raise ValueError(
            f"reduction {reduction.name}: {name} is {kind.field(name).either}, not {', '.join(values)}"
        )


def _check_each(reduction: Reduction, kind: Kind) -> None:
    if (each := reduction.each) is None:
        return
    if not kind.has(each.field) or kind.field(each.field).type != "numbers":
        raise ValueError(f"reduction {reduction.name}: {kind.name} has no list of numbers {each.field}")
    if reduction.as_of is not None:
        raise ValueError(f"reduction {reduction.name}: lists are not taken apart in a join")
    if list(each.edges) != sorted(set(each.edges)) or not all(map(math.isfinite, each.edges)):
        raise ValueError(f"reduction {reduction.name}: the edges do not ascend, or are not finite")
    if each.key in reduction.group_by:
        raise ValueError(f"reduction {reduction.name}: {each.key} is the key of each number")


def _set_field(reduction: Reduction, kind: Kind, state: Kind | None) -> str | None:
    """The component set that is grouped by, else the one that witnesses are counted in."""
    sets = [f.name for one in (kind, state) if one is not None for f in one.fields if f.type == "components"]
    grouped = [name for name in reduction.group_by if name in sets]
    if len(grouped) > 1:
        raise ValueError(f"reduction {reduction.name}: only one component set can be grouped by")
    if grouped:
        return grouped[0]
    if any(isinstance(one, CountWitnesses) for one in reduction.aggregates.values()):
        if not sets:
            raise ValueError(f"reduction {reduction.name}: there are no components to count witnesses in")
        return sets[0]
    return None
