"""Dumps of PyTorch's flight recorder, one for each rank, to rows of `collective`. Pure.

Format 2.x of `torch/csrc/distributed/c10d/FlightRecorderDetail.hpp`, as JSON (`_dump_nccl_trace_json`). A dump does not
name its rank: the file does. Times:

- `time` is `time_created_ns`, the moment at which the process launched the operation.
- `start_ns` and `end_ns` are given where the dump has `duration_ms` (TORCH_NCCL_ENABLE_TIMING=1): their difference is
  the duration on the GPU, `start_ns` is the launch. The discovered times are those of a watchdog thread and not used.

Transfers between two ranks have a communicator of their own for each direction, `GROUP/SRC>DST`, and are numbered in it
from 1: `p2p_seq_id` counts all transfers of a rank, so that two ranks have different numbers for the same transfer.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any

import msgspec

BROKEN = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)
"""Errors of bytes that are no JSON, or too deep."""
VERSION = "2"
PICKLE = b"\x80"
UNPICKLE = 'python3 -c "import json,pickle,sys; json.dump(pickle.load(sys.stdin.buffer),sys.stdout)"'
BACKWARDS_NS = 1_000_000_000
"""Largest step back of a rank's clock between two operations."""
SIZES = {"Double": 8, "Long": 8, "ComplexFloat": 8, "ComplexDouble": 16, "Float": 4, "Int": 4, "Half": 2, "BFloat16": 2,
    "Short": 2}  # fmt: skip
"""Bytes of an element by dtype; all others have one."""
_TRANSFER = re.compile(r"(send|recv) (\d+)(->|<-)(\d+)")
_RANK = re.compile(r"(\d+)(?:\.json)?(?:\.gz)?$")


class InvalidDumpError(ValueError):
    """The dump cannot be read; the message says what is wrong with which field."""


class _Group(msgspec.Struct):
    ranks: str = "[]"
    name: str = ""
    desc: str = ""


class _Entry(msgspec.Struct):
    record_id: int
    process_group: tuple[str, str]
    collective_seq_id: int
    profiling_name: str
    time_created_ns: int
    state: str
    p2p_seq_id: int = 0
    op_id: int = 0
    is_p2p: bool = False
    duration_ms: float | None = None
    input_sizes: list[list[int]] = []
    input_dtypes: list[str] = []
    output_sizes: list[list[int]] = []
    output_dtypes: list[str] = []
    retired: bool = False

    @property
    def reached(self) -> str:
        """The state. gloo records no events of a device: its operations stay scheduled and retire when they end."""
        return "completed" if self.retired and self.profiling_name.startswith("gloo:") else self.state


class _Dump(msgspec.Struct):
    version: str
    pg_config: dict[str, _Group]
    entries: list[_Entry] = []


@dataclass(frozen=True, slots=True)
class Dump:
    """The dump of one rank: its groups (name to global ranks, in the order of group ranks) and its operations."""

    name: str
    rank: int
    groups: Mapping[str, tuple[int, ...]]
    entries: tuple[_Entry, ...]

    @property
    def is_cut(self) -> bool:
        """Whether the ring buffer has dropped the first operations."""
        return bool(self.entries) and self.entries[0].record_id > 0


@dataclass(slots=True)
class Converted:
    """Rows of `collective`, ordered by rank and time, and what was left out, in sentences."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def read(name: str, payload: bytes) -> Dump:
    """The dump in a file of that name. Raises InvalidDumpError."""
    if payload.startswith(PICKLE):
        raise InvalidDumpError(
            f"is a pickle, which can run code; if you trust it: {UNPICKLE} < {name} > {name}.json"
        )
    found = _RANK.search(PurePath(name).name)
    if found is None:
        raise InvalidDumpError(
            "the name of the file does not end in the rank, such as nccl_trace_rank_7.json"
        )
    try:
        dump = msgspec.json.decode(payload, type=_Dump)
    except msgspec.ValidationError as error:
        raise InvalidDumpError(f"is no dump of the flight recorder: {error}") from error
    except BROKEN as error:
        raise InvalidDumpError(f"is not whole JSON ({len(payload)} bytes): {error}") from error
    if dump.version.partition(".")[0] != VERSION:
        raise InvalidDumpError(f"version {dump.version[:20]} of the format cannot be read, only {VERSION}.x")
    # gloo leaves the default group's key empty where its entries say "0".
    groups = {name or "0": _ranks(name, group.ranks) for name, group in dump.pg_config.items()}
    one = Dump(name, int(found[1]), groups, tuple(sorted(dump.entries, key=lambda entry: entry.record_id)))
    _check(one)
    return one


def convert(dumps: Iterable[Dump], job: str) -> Converted:
    """The rows of the dumps of a job. Raises InvalidDumpError for dumps that contradict each other."""
    made = Converted()
    all_of = sorted(dumps, key=lambda one: one.rank)
    names = _communicators(all_of)
    for one in all_of:
        rows, left_out = _rows(one, job, names)
        made.rows += rows
        if left_out:
            made.notes.append(
                f"rank {one.rank}: {left_out} transfers left out; the ring buffer dropped the first operations, so"
                " that they cannot be numbered"
            )
    missing = sorted({rank for one in all_of for group in one.groups.values() for rank in group})
    missing = [rank for rank in missing if rank not in {one.rank for one in all_of}]
    if missing:
        shown = ", ".join(map(str, missing[:10])) + (
            f" and {len(missing) - 10} more" if len(missing) > 10 else ""
        )
        made.notes.append(f"no dump of rank {shown}: without rows, as if launching nothing")
    return made


def _ranks(name: str, text: str) -> tuple[int, ...]:
    try:
        return tuple(msgspec.json.decode(text.encode(), type=list[int]))
    except msgspec.MsgspecError as error:
        raise InvalidDumpError(f"pg_config.{name}.ranks: {text[:40]!r} is not a list of ranks") from error


def _check(dump: Dump) -> None:
    seen: set[tuple[object, ...]] = set()
    before = 0
    for entry in dump.entries:
        where = f"record {entry.record_id}"
        group = dump.groups.get(entry.process_group[0])
        if group is None:
            raise InvalidDumpError(f"{where}: process group {entry.process_group[0]!r} is not in pg_config")
        if group and dump.rank not in group:
            raise InvalidDumpError(
                f"{where}: rank {dump.rank} (by the name of the file) is none of the {len(group)} ranks of process"
                f" group {entry.process_group[0]!r}"
            )
        if entry.state not in ("scheduled", "started", "completed"):
            raise InvalidDumpError(
                f"{where}: state {entry.state[:20]!r} is not scheduled, started or completed"
            )
        number = entry.p2p_seq_id if entry.is_p2p else entry.collective_seq_id
        key = (entry.process_group[0], entry.is_p2p, number, entry.op_id, entry.profiling_name)
        if key in seen:
            raise InvalidDumpError(f"{where}: sequence number {number} of {entry.profiling_name} comes twice")
        seen.add(key)
        if entry.time_created_ns < before - BACKWARDS_NS:
            back = (before - entry.time_created_ns) / 1e9
            raise InvalidDumpError(
                f"{where}: time_created_ns is {back:.1f} s before the record before; the clock stepped"
            )
        if entry.duration_ms is not None and not 0 <= entry.duration_ms < math.inf:
            raise InvalidDumpError(f"{where}: duration_ms {entry.duration_ms} is not a duration")
        before = entry.time_created_ns


def _communicators(dumps: list[Dump]) -> dict[tuple[str, tuple[int, ...]], str]:
    """The communicator of each group, by name and ranks: groups of one name and other ranks get their first rank."""
    ranks: dict[str, set[tuple[int, ...]]] = {}
    seen: dict[int, str] = {}
    for one in dumps:
        if one.rank in seen:
            raise InvalidDumpError(f"{one.name}: rank {one.rank} is also the rank of {seen[one.rank]}")
        seen[one.rank] = one.name
        for name, group in one.groups.items():
            others = ranks.setdefault(name, set())
            for other in others:
                if other != group and set(other) & set(group):
                    raise InvalidDumpError(
                        f"{one.name}: process group {name!r} has {len(group)} ranks here and {len(other)} in another"
                        " dump, some of them the same: the dumps are not of one job"
                    )
            others.add(group)
    return {
        (name, group): name if len(groups) == 1 else f"{name}@{min(group, default=0)}"
        for name, groups in ranks.items()
        for group in groups
    }


def _rows(
    dump: Dump, job: str, names: Mapping[tuple[str, tuple[int, ...]], str]
) -> tuple[list[dict[str, Any]], int]:
    rows: list[dict[str, Any]] = []
    counts: dict[str, int] = {}
    left_out = 0
    for entry in dump.entries:
        name = entry.process_group[0]
        group = dump.groups[name]
        row: dict[str, Any] = {
            "time": entry.time_created_ns,
            "job": job,
            "communicator": names[name, group],
            "seq": entry.collective_seq_id,
            "op": entry.profiling_name.partition(":")[2] or entry.profiling_name,
            "rank": dump.rank,
            "state": entry.reached,
            "bytes": _bytes(entry),
            "ranks": len(group),
        }
        if entry.duration_ms:
            row["start_ns"] = entry.time_created_ns
            row["end_ns"] = entry.time_created_ns + round(entry.duration_ms * 1e6)
        if (transfer := _TRANSFER.search(entry.profiling_name)) is not None:
            if dump.is_cut:
                left_out += 1
                continue
            row |= _transfer(transfer, group, row["communicator"])
            counts[row["communicator"]] = row["seq"] = counts.get(row["communicator"], 0) + 1
        rows.append(row)
    return rows, left_out


def _transfer(found: re.Match[str], group: tuple[int, ...], communicator: str) -> dict[str, Any]:
    """Source and destination as global ranks; `send 1->2` and `recv 2<-1` are of group ranks."""
    here, there = (group[int(one)] if int(one) < len(group) else int(one) for one in (found[2], found[4]))
    src, dst = (here, there) if found[1] == "send" else (there, here)
    return {"op": found[1], "src": src, "dst": dst, "communicator": f"{communicator}/{src}>{dst}", "ranks": 2}


def _bytes(entry: _Entry) -> int:
    sizes, types = (entry.input_sizes, entry.input_dtypes)
    if not sizes:
        sizes, types = entry.output_sizes, entry.output_dtypes
    return sum(math.prod(shape) * SIZES.get(dtype, 1) for shape, dtype in zip(sizes, types, strict=False))
