"""Sums of a window: the groups and totals that partial sums give (`finish`), and their canonical bytes (`dumps`).

The same code runs after SQL and offline, so that both give the same sums. Pure: numpy only."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import zstandard
from numpy.typing import NDArray

from ingest.telemetry.decode.columns import Names, Sets
from ingest.telemetry.windows.reductions import (
    Aggregate,
    Count,
    CountDistinct,
    CountWitnesses,
    Paths,
    Plan,
    Sum,
    Sums,
)

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Values = Ints | Floats


@dataclass(frozen=True, slots=True)
class Partials:
    """Rows of telemetry grouped by keys, slice, component set and distinct values; one entry a group
    throughout.

    `distinct` identifies values by any numbers, `flags` say whether a field was above 0 in some row of the
    group.
    """

    counts: Ints
    named: dict[str, Names] = field(default_factory=dict)
    slices: Ints | None = None
    numbered: dict[str, Ints | Floats] = field(default_factory=dict)
    """Keys that are numbers; among them what `each` adds."""
    sets: Sets | None = None
    distinct: dict[str, NDArray[np.generic]] = field(default_factory=dict)
    flags: dict[str, NDArray[np.bool_]] = field(default_factory=dict)
    sums: dict[str, Values] = field(default_factory=dict)
    unmatched: int = 0
    later: int = 0


@dataclass(frozen=True, slots=True)
class Groups:
    """`of[i]` is the group of entry i; `first[g]` an entry of group g. Groups ascend by their keys."""

    of: NDArray[np.intp]
    first: NDArray[np.intp]

    @property
    def count(self) -> int:
        return len(self.first)


def as_key(column: NDArray[np.generic]) -> Values:
    """A column of numbers, times or flags as a key."""
    return column.astype(np.float64) if column.dtype == np.float64 else column.astype(np.int64)


def group(keys: Sequence[NDArray[np.generic]], entries: int) -> Groups:
    """Entries with equal keys, in ascending order of the keys, the first key weighing most."""
    if not keys:
        return Groups(np.zeros(entries, np.intp), np.zeros(min(entries, 1), np.intp))
    order = np.lexsort(tuple(reversed(keys)))
    new = np.zeros(entries, bool)
    new[:1] = True
    for key in keys:
        ordered = key[order]
        new[1:] |= ordered[1:] != ordered[:-1]
    of = np.empty(entries, np.intp)
    of[order] = np.cumsum(new) - 1
    return Groups(of, order[new])


def add_up(groups: Groups, values: Values) -> Values:
    """Sums by group. Floats are added in ascending order, so that the same values give the same bits."""
    if values.dtype == np.float64:
        order = np.lexsort((values, groups.of))
        return np.bincount(groups.of[order], values[order], groups.count).astype(np.float64)
    totals: Ints = np.zeros(groups.count, np.int64)
    np.add.at(totals, groups.of, values)
    return totals


def finish(plan: Plan, partials: Partials) -> Sums:
    """The table of the reduction, in the order of its keys."""
    reduction = plan.reduction
    keys: dict[str, NDArray[np.generic]] = {}
    shown: dict[str, tuple[str, ...]] = {}
    rest: _Rest | None = None
    for name in reduction.group_by:
        if name == plan.set_field:
            assert partials.sets is not None
            rest = _rest(partials.sets, reduction.witness_kinds)
            keys[name] = rest.codes
        elif name in partials.numbered:
            keys[name] = partials.numbered[name]
        else:
            keys[name], shown[name] = _ranked(partials.named[name])
    if partials.slices is not None:
        keys["slice"] = partials.slices
    if (each := reduction.each) is not None:
        keys[each.key] = partials.numbered[each.key]
    groups = group(list(keys.values()), len(partials.counts))
    return Sums(
        keys={name: _key(plan, name, key[groups.first], shown, rest) for name, key in keys.items()},
        values={name: _value(plan, partials, groups, one) for name, one in reduction.aggregates.items()},
        rows=groups.count,
        unmatched=partials.unmatched,
        later=partials.later,
    )


def _key(
    plan: Plan, name: str, codes: NDArray[np.generic], shown: dict[str, tuple[str, ...]], rest: _Rest | None
) -> Paths | tuple[str, ...] | Values:
    if name in shown:
        return tuple(shown[name][code] for code in codes.tolist())
    if name == plan.set_field:
        assert rest is not None
        return rest.paths(codes.astype(np.intp))
    return as_key(codes)


def _ranked(column: Names) -> tuple[NDArray[np.int64], tuple[str, ...]]:
    """Codes into the sorted names that are in use, and those names."""
    used = np.unique(column.codes)
    ordered = sorted((column.names[code], code) for code in used.tolist())
    ranks = np.zeros(len(column.names), np.int64)
    ranks[[code for _, code in ordered]] = np.arange(len(ordered))
    return ranks[column.codes], tuple(name for name, _ in ordered)


@dataclass(frozen=True, slots=True)
class _Rest:
    """Component sets without their witnesses: `codes` into `sets`, which ascend as tuples of names do.

    A set is the ranks of its sorted names, four big-endian bytes each, because such bytes compare as those
    tuples.
    """

    codes: NDArray[np.int64]
    sets: list[bytes]
    names: tuple[str, ...]

    def paths(self, codes: NDArray[np.intp]) -> Paths:
        chosen = [self.sets[code] for code in codes.tolist()]
        sizes = np.fromiter((len(one) // 4 for one in chosen), np.int64, len(chosen))
        indices = np.frombuffer(b"".join(chosen), ">u4").astype(np.int32)
        return Paths(self.names, np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes))), indices)


def _rest(column: Sets, witness_kinds: tuple[str, ...]) -> _Rest:
    used = np.unique(column.codes)
    owners, members = _entries(column, used)
    others = ~_are_witnesses(column.names, witness_kinds)[members]
    owners, members = owners[others], members[others]
    names = sorted((column.names[code], code) for code in np.unique(members).tolist())
    ranks = np.zeros(len(column.names), np.int64)
    ranks[[code for _, code in names]] = np.arange(len(names))
    members = ranks[members]
    order = np.lexsort((members, owners))
    packed = members[order].astype(">u4").tobytes()
    ends = (4 * np.cumsum(np.bincount(owners, minlength=len(used)))).tolist()
    keys = [packed[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    distinct = sorted(set(keys))
    numbers = {key: number for number, key in enumerate(distinct)}
    by_set = np.zeros(len(column.sizes), np.int64)
    by_set[used] = np.fromiter(map(numbers.__getitem__, keys), np.int64, len(keys))
    return _Rest(by_set[column.codes], distinct, tuple(name for name, _ in names))


def _entries(column: Sets, codes: NDArray[np.generic]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The members of these sets in one list, and beside each the place of its set in `codes`."""
    sizes = column.sizes[codes]
    owners = np.repeat(np.arange(len(codes)), sizes)
    before = np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes)))[:-1]
    places = np.arange(len(owners)) - before[owners] + column.indptr[:-1][codes][owners]
    return owners, column.indices[places].astype(np.int64)


def _are_witnesses(names: Sequence[str], witness_kinds: tuple[str, ...]) -> NDArray[np.bool_]:
    wanted = frozenset(witness_kinds)
    return np.fromiter((name.partition("/")[0] in wanted for name in names), np.bool_, len(names))


def _value(plan: Plan, partials: Partials, groups: Groups, aggregate: Aggregate) -> Values:
    match aggregate:
        case Count():
            return add_up(groups, partials.counts)
        case Sum(name):
            return add_up(groups, partials.sums[name])
        case CountDistinct(name, where):
            counted = slice(None) if where is None else partials.flags[where]
            return _distinct(groups, groups.of[counted], partials.distinct[name][counted])
        case CountWitnesses(where):
            assert partials.sets is not None
            every = np.ones(len(partials.counts), bool)
            counted = every if where is None else partials.flags[where]
            return _witnesses(plan, groups, groups.of[counted], partials.sets.take(counted))


def _distinct(groups: Groups, of: NDArray[np.intp], values: NDArray[np.generic]) -> Ints:
    """Number of different values of each group."""
    pairs = group((of, values), len(of))
    return np.bincount(of[pairs.first], minlength=groups.count).astype(np.int64)


def _witnesses(plan: Plan, groups: Groups, of: NDArray[np.intp], sets: Sets) -> Ints:
    pairs = group((of, sets.codes), len(of))
    owners, members = _entries(sets, sets.codes[pairs.first])
    seen = _are_witnesses(sets.names, plan.reduction.witness_kinds)[members]
    return _distinct(groups, of[pairs.first][owners[seen]], members[seen])


FORMAT = "dossier sums 1"
LEVEL = 3
_TYPES = {"int64": "<i8", "float64": "<f8", "int32": "<i4"}
Json = Any
Array = NDArray[np.generic]


def dumps(sums: Mapping[str, Sums]) -> bytes:
    """The sums of a window, by reduction, as bytes."""
    arrays: list[Array] = []
    header = {
        "format": FORMAT,
        "sums": {
            name: {
                "rows": one.rows,
                "unmatched": one.unmatched,
                **({"later": one.later} if one.later else {}),
                "keys": {key: _described_key(value, arrays) for key, value in one.keys.items()},
                "values": {key: _array(value, arrays) for key, value in one.values.items()},
            }
            for name, one in sums.items()
        },
    }
    text = json.dumps(header, separators=(",", ":"), ensure_ascii=False).encode()
    body = b"".join([len(text).to_bytes(8, "little"), text, *(array.tobytes() for array in arrays)])
    return zstandard.ZstdCompressor(level=LEVEL, write_checksum=False, threads=0).compress(body)


def loads(body: bytes) -> dict[str, Sums]:
    """Sums that `dumps` wrote; the arrays are read-only. Raises ValueError for anything else."""
    try:
        plain = zstandard.ZstdDecompressor().decompress(body)
        size = int.from_bytes(plain[:8], "little")
        header = json.loads(plain[8 : 8 + size])
        if header["format"] != FORMAT:
            raise ValueError("these are not sums that this version can read")
        arrays = _Arrays(memoryview(plain)[8 + size :])
        return {name: _sums(one, arrays) for name, one in header["sums"].items()}
    except (zstandard.ZstdError, KeyError, TypeError) as error:
        raise ValueError("these are not sums") from error


def _array(array: Array, arrays: list[Array]) -> Json:
    arrays.append(array.astype(_TYPES[array.dtype.name], copy=False))
    return {"type": array.dtype.name, "length": len(array)}


def _described_key(key: Paths | Sequence[str] | Array, arrays: list[Array]) -> Json:
    if isinstance(key, Paths):
        return {
            "names": key.names,
            "indptr": _array(key.indptr, arrays),
            "indices": _array(key.indices, arrays),
        }
    if isinstance(key, np.ndarray):
        return _array(key, arrays)
    return {"texts": list(key)}


class _Arrays:
    """Takes one array after the other off the bytes."""

    def __init__(self, left: memoryview) -> None:
        self.left = left

    def take(self, described: Json) -> Array:
        dtype = np.dtype(_TYPES[described["type"]])
        size = described["length"] * dtype.itemsize
        taken, self.left = self.left[:size], self.left[size:]
        return np.frombuffer(taken, dtype)


def _sums(described: Json, arrays: _Arrays) -> Sums:
    keys = {name: _read_key(key, arrays) for name, key in described["keys"].items()}
    values: dict[str, Any] = {name: arrays.take(value) for name, value in described["values"].items()}
    return Sums(keys, values, described["rows"], described["unmatched"], described.get("later", 0))


def _read_key(described: Json, arrays: _Arrays) -> Any:
    if "texts" in described:
        return tuple(described["texts"])
    if "names" in described:
        indptr = arrays.take(described["indptr"])
        return Paths(tuple(described["names"]), indptr, arrays.take(described["indices"]))  # type: ignore[arg-type]
    return arrays.take(described)
