"""Lines of the NCCL Inspector and the JSON of NCCL RAS to rows of `collective`. Pure.

Both know a process by its rank in each communicator. The global rank is the rank in the largest communicator that holds
the process (host and process id); a process that is in none as large as the largest is left out and counted.
NCCL counts the operations of each function apart, so that a row has the communicator `ID/FUNCTION` and the number of
the operation in it.

- **Inspector** (`plugins/profiler/inspector` of NCCL, formats 4 and 5): completed operations. `end_ns` is the end of
  the kernel where the line has its events (NCCL_INSPECTOR_DUMP_VERBOSE=1), else the time of the dump; `end_ns` minus
  `start_ns` is the measured duration in both cases.
- **RAS** (port 28028, `ncclras -f json`, `src/ras/client_support.cc`): how many operations each rank has launched. The
  row of a rank is its last launch, `scheduled`. A rank that is missing or has launched nothing has no row. Its time has
  no zone and is read as UTC unless `at` is given.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from ingest.integrations.flight_recorder import BROKEN

FORMATS = ("v4", "v5")
"""Major versions of the Inspector's lines."""
BACKWARDS_US = 1_000_000
"""Largest step back of a process' clock between two lines."""
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_REPLIES = re.compile(rb"\A(?:(?:OK|SERVER PROTOCOL \d+)\r?\n)+")
"""Replies of the port to the commands before the answer, as `nc` shows them and `ncclras` does not."""
Process = tuple[str, int, int]  # host, process id, device


class InvalidNcclError(ValueError):
    """The payload is none of NCCL's; the message says where and why."""


@dataclass(slots=True)
class Converted:
    """Rows of `collective`, and what was left out, in sentences."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Member:
    """One row with the rank in its communicator in place of the global one."""

    process: Process
    communicator: str
    size: int
    rank: int
    row: dict[str, Any]
    peer: int | None = None


# Inspector
# ----------------------------------------------------------------------------------------------------------
class _Header(msgspec.Struct):
    id: str
    rank: int
    n_ranks: int


class _Metadata(msgspec.Struct):
    inspector_output_format_version: str
    dump_timestamp_us: int
    hostname: str
    pid: int


class _KernelEvent(msgspec.Struct):
    kernel_stop_ts: int = 0


class _Trace(msgspec.Struct):
    kernel_events: list[_KernelEvent] = []


class _Collective(msgspec.Struct):
    coll: str
    coll_sn: int
    coll_msg_size_bytes: int
    coll_exec_time_us: float
    event_trace_ts: _Trace | None = None


class _Transfer(msgspec.Struct):
    p2p: str
    p2p_sn: int
    p2p_peer: int
    p2p_msg_size_bytes: int
    p2p_exec_time_us: float
    event_trace_ts: _Trace | None = None


class _Line(msgspec.Struct):
    header: _Header
    metadata: _Metadata
    coll_perf: _Collective | None = None
    p2p_perf: _Transfer | None = None


def inspector(payloads: Iterable[tuple[str, bytes]], job: str) -> Converted:
    """The rows of files by name, one file a process. Raises InvalidNcclError with file and line."""
    members: list[_Member] = []
    seen: dict[tuple[object, ...], str] = {}
    sizes: dict[str, int] = {}
    other = 0
    for name, payload in payloads:
        before = 0
        for number, text in enumerate(payload.splitlines(), start=1):
            if not text.strip():
                continue
            where = f"{name}: line {number}"
            line = _line(where, text)
            if line.metadata.dump_timestamp_us < before - BACKWARDS_US:
                raise InvalidNcclError(
                    f"{where}: dump_timestamp_us is before that of the line before; the clock stepped"
                )
            before = max(before, line.metadata.dump_timestamp_us)
            if sizes.setdefault(line.header.id, line.header.n_ranks) != line.header.n_ranks:
                raise InvalidNcclError(
                    f"{where}: communicator {line.header.id} has {line.header.n_ranks} ranks here and"
                    f" {sizes[line.header.id]} before"
                )
            if (member := _operation(line, job)) is None:
                other += 1
                continue
            key = (member.communicator, member.row["op"], member.row["seq"], member.rank, member.peer)
            if key in seen:
                raise InvalidNcclError(
                    f"{where}: sequence number {member.row['seq']} of {member.row['op']} of rank {member.rank} was at"
                    f" {seen[key]} already"
                )
            seen[key] = where
            members.append(member)
    made = _with_global_ranks(members)
    made.notes += [f"{other} lines hold neither a collective nor a transfer"] if other else []
    return made


def _line(where: str, text: bytes) -> _Line:
    try:
        line = msgspec.json.decode(text, type=_Line)
    except msgspec.ValidationError as error:
        raise InvalidNcclError(f"{where}: is no line of the NCCL Inspector: {error}") from error
    except BROKEN as error:
        raise InvalidNcclError(f"{where}: is not whole JSON: {error}") from error
    version = line.metadata.inspector_output_format_version
    if version.partition(".")[0] not in FORMATS:
        raise InvalidNcclError(f"{where}: format {version[:20]} cannot be read, only {' and '.join(FORMATS)}")
    if not 0 <= line.header.rank < line.header.n_ranks:
        raise InvalidNcclError(f"{where}: rank {line.header.rank} is none of {line.header.n_ranks} ranks")
    return line


def _operation(line: _Line, job: str) -> _Member | None:
    if (done := line.coll_perf) is not None:
        op, seq, peer = snake(done.coll), done.coll_sn, None
        size, took, trace = done.coll_msg_size_bytes, done.coll_exec_time_us, done.event_trace_ts
    elif (sent := line.p2p_perf) is not None:
        op, seq, peer = snake(sent.p2p), sent.p2p_sn, sent.p2p_peer
        size, took, trace = sent.p2p_msg_size_bytes, sent.p2p_exec_time_us, sent.event_trace_ts
    else:
        return None
    stops = [event.kernel_stop_ts for event in trace.kernel_events if event.kernel_stop_ts] if trace else []
    end = 1000 * max(stops, default=line.metadata.dump_timestamp_us)
    row = {
        "time": end,
        "job": job,
        "seq": seq,
        "op": op,
        "state": "completed",
        "bytes": size,
        "start_ns": max(0, end - round(1000 * took)),
        "end_ns": end,
        "node": f"node/{line.metadata.hostname}",
    }
    process = line.metadata.hostname, line.metadata.pid, 0
    return _Member(process, line.header.id, line.header.n_ranks, line.header.rank, row, peer)


# RAS
# ----------------------------------------------------------------------------------------------------------
class _Rank(msgspec.Struct):
    rank: int
    host: str
    pid: int
    collective_counts: dict[str, int] = {}
    cuda_dev: int = 0


class _Communicator(msgspec.Struct):
    hash: str
    size: int
    ranks: list[_Rank]
    missing_ranks: list[_Rank] = []


class _Status(msgspec.Struct):
    timestamp: str
    communicators: list[_Communicator]
    nccl_version: str = ""


def ras(payload: bytes, job: str, at: datetime | None = None) -> Converted:
    """The rows of the answer of `ncclras -f json`. Raises InvalidNcclError."""
    try:
        status = msgspec.json.decode(_REPLIES.sub(b"", payload), type=_Status)
    except msgspec.ValidationError as error:
        raise InvalidNcclError(f"is no JSON of NCCL RAS: {error}") from error
    except BROKEN as error:
        raise InvalidNcclError(f"is not whole JSON ({len(payload)} bytes): {error}") from error
    members = []
    for one in status.communicators:
        _check(one)
        for rank in one.ranks:
            process = rank.host, rank.pid, rank.cuda_dev
            for function, count in rank.collective_counts.items():
                row = {
                    "time": _nanoseconds(at or _moment(status.timestamp)),
                    "job": job,
                    "seq": count,
                    "op": snake(function),
                    "state": "scheduled",
                    "node": f"node/{rank.host}",
                }
                members.append(_Member(process, one.hash, one.size, rank.rank, row))
    made = _with_global_ranks(members)
    made.rows = [row for row in made.rows if row["seq"]]
    missing = sum(len(one.missing_ranks) for one in status.communicators)
    made.notes += [f"{missing} ranks did not answer and have no row"] if missing else []
    return made


def _check(one: _Communicator) -> None:
    ranks = [rank.rank for rank in (*one.ranks, *one.missing_ranks)]
    if len(ranks) != one.size:
        raise InvalidNcclError(f"communicator {one.hash}: has {one.size} ranks and lists {len(ranks)}")
    if len(set(ranks)) != len(ranks) or not all(0 <= rank < one.size for rank in ranks):
        raise InvalidNcclError(f"communicator {one.hash}: a rank comes twice, or is none of {one.size}")


def _moment(text: str) -> datetime:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as error:
        raise InvalidNcclError(
            f"timestamp: {text[:40]!r} is not a time such as 2026-03-01 12:00:00"
        ) from error
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def _nanoseconds(moment: datetime) -> int:
    return (moment - _EPOCH) // timedelta(microseconds=1) * 1000


# Ranks
# ----------------------------------------------------------------------------------------------------------
def snake(name: str) -> str:
    """`AllReduce` as `all_reduce`."""
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _with_global_ranks(members: list[_Member]) -> Converted:
    """The rows with global ranks, the communicators split by function."""
    largest = max((member.size for member in members), default=0)
    world = {member.process: member.rank for member in members if member.size == largest}
    process_of = {(member.communicator, member.rank): member.process for member in members}
    made = Converted()
    strangers = set()
    for member in members:
        if member.process not in world:
            strangers.add(member.process)
            continue
        row = {**member.row, "rank": world[member.process], "ranks": member.size}
        row["communicator"] = f"{member.communicator}/{row['op']}"
        if member.peer is not None:
            peer = process_of.get((member.communicator, member.peer))
            other = -1 if peer is None else world.get(peer, -1)
            row |= (
                {"src": row["rank"], "dst": other}
                if row["op"] == "send"
                else {"src": other, "dst": row["rank"]}
            )
        made.rows.append(row)
    made.rows.sort(key=lambda row: (row["rank"], row["time"]))
    if strangers:
        made.notes.append(
            f"{len(strangers)} processes are in no communicator of {largest} ranks, the largest: their global ranks are"
            " not known and their rows left out"
        )
    return made
