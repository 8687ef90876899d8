"""Hangs: which ranks never launched what others wait for, and which operations all launched and none completes.

A rank is blocked by its oldest part that is not completed. It waits for the members of that communicator that have not
launched so far. Waiting ends at ranks that are not blocked themselves (they never launched), at operations that all
have launched (they are stuck), or in a ring (the code of ranks is out of step).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from analyzers.builtin.c4d.observed import COMPLETED, SCHEDULED, SHOWN, Flags, Floats, Ints, Records
from analyzers.builtin.c4d.places import Pattern, Place, patterns
from analyzers.builtin.text import listed, percent

_MOST_STALL = 600.0
_USUAL = 5.0
"""Times the 95th percentile of durations,"""
_LONGEST = 1.5
"""and times the longest duration that ended, up to which a stall is usual."""
_PAUSE, _PAUSES = 3.0, 4.0
"""A pause of all ranks before the operation, seconds, and how many times as long its stragglers may take."""
_WRITER = 60.0
"""Seconds for which the first rank may work alone: it often writes checkpoints and logs for all."""
_MANY = 0.2
"""Share of the ranks that may stop together, more only within one node."""
LOST = 0.01
"""Share of lost parts below which a part that is missing was not launched."""
_UNRECORDED = 0.1
"""Expected number of members of a blocked operation of which all reports are lost, below which one that has none did
not launch it."""
_BEHIND, _BEHIND_LOST = 2, 8
"""Operations behind those that completed without it by which a rank is not recorded, without and with lost parts."""

Nature = Literal["launch", "transfer", "mismatch", "deadlock"]


@dataclass(frozen=True, slots=True)
class Culprit:
    """A place behind a hang, with places that explain as much, the ranks that wait for it, and what it should have
    done: operation, communicator and sequence number."""

    nature: Nature
    place: Place
    alike: tuple[Place, ...]
    waiting: int
    op: str
    communicator: str
    seq: int
    other_op: str = ""


@dataclass(frozen=True, slots=True)
class Hang:
    """`stall` is for how long nothing completed and `usual` up to which such a stall is usual, seconds; `reason` why
    nobody can be named although the job stalls, empty otherwise. `blocked` counts the ranks that wait.
    """

    stall: float
    usual: float
    blocked: int
    ranks: int
    lost: float
    culprits: tuple[Culprit, ...] = ()
    reason: str = ""
    unseen: tuple[int, ...] = ()

    @property
    def is_lossy(self) -> bool:
        return self.lost >= LOST


@dataclass(slots=True)
class _Waiting:
    """Waits of each blocked rank: for other ranks, and for stuck operations as (communicator, seq)."""

    ranks: dict[int, set[int]] = field(default_factory=dict)
    stuck: dict[int, set[tuple[int, int]]] = field(default_factory=dict)
    about: dict[int, tuple[int, int]] = field(default_factory=dict)
    """The operation that others wait for a rank to launch."""
    pairs: set[tuple[int, int]] = field(default_factory=set)
    """Sends and receives that both ends launched."""


def hang_of(records: Records, now: float, least: float) -> Hang | None:
    """The hang of a job at `now` (seconds after the window's start); None while it is not blocked."""
    collective = np.flatnonzero(~records.is_transfer)
    lost = lost_share(records, collective)
    waiting = _waiting(records, collective, lost)
    ranks = len(records.ranks)
    if not waiting.ranks:
        return None
    stall = now - _last_activity(records)
    usual = _usual_stall(records, collective, waiting, least)
    blocked = len(waiting.ranks)
    if stall < least or stall < usual:
        return Hang(stall, usual, blocked, ranks, lost)
    sinks, stuck, rings = _ends(waiting)
    unseen = _unseen(records)
    found = [
        *_mismatches(records, collective, stuck, blocked),
        *_launches(records, waiting, sinks),
    ]
    if not any(one.nature == "mismatch" for one in found):
        found += _transfers(records, waiting, stuck)
    if not found:
        found += _deadlocks(records, waiting, rings)
    if least > 0 and len(sinks) == 1 and min(sinks) == int(records.ranks[0]) and stall < max(usual, _WRITER):
        reason = f"the first rank works alone and may write a checkpoint; after {_WRITER:g} s it hangs"
        return Hang(stall, _WRITER, blocked, ranks, lost, (), reason, unseen)
    unrecorded = _unrecorded(records, waiting, sinks, lost)
    reason = _undecided(records, sinks, stuck, unseen, found, lost, unrecorded)
    return Hang(stall, usual, blocked, ranks, lost, () if reason else tuple(found), reason, unseen)


def lost_share(records: Records, collective: Ints) -> float:
    """The share of parts that are missing from operations between the first and the last of their members."""
    retained = collective[~records.is_p2p[collective]]
    # Of last launches alone most operations are not seen, and that is no loss.
    followed = np.unique(records.communicator[retained][records.state[retained] != SCHEDULED])
    retained = retained[np.isin(records.communicator[retained], followed)]
    if not len(retained):
        return 0.0
    stream = records.communicator[retained] * (int(records.rank.max()) + 1) + records.rank[retained]
    _, row = np.unique(stream, return_inverse=True)
    count = np.bincount(row)
    low, high = np.full(len(count), np.iinfo(np.int64).max), np.full(len(count), -1)
    np.minimum.at(low, row, records.seq[retained])
    np.maximum.at(high, row, records.seq[retained])
    numbers = np.unique(np.stack([records.communicator[retained], records.seq[retained]]), axis=1)
    expected = 0
    for place in np.unique(row).tolist():
        communicator = int(records.communicator[retained][np.argmax(row == place)])
        seqs = numbers[1, numbers[0] == communicator]
        expected += int(np.searchsorted(seqs, high[place], "right") - np.searchsorted(seqs, low[place]))
    return 1 - len(retained) / max(1, expected)


def _last_activity(records: Records) -> float:
    """Time at which nine tenths of the ranks had launched or completed their last part, clocks aligned."""
    moment = np.where(np.isnan(records.end), records.start, records.end) - _ahead(records)[records.rank]
    last = np.full(int(records.rank.max()) + 1, -np.inf)
    np.maximum.at(last, records.rank, moment)
    return float(np.percentile(last[np.isfinite(last)], 90))


_ROUNDS = 8


def _ahead(records: Records) -> Floats:
    """By rank, seconds by which its clock is ahead of the mean: all leave a symmetric operation together."""
    size = int(records.rank.max()) + 1
    ahead = np.zeros(size)
    used = np.flatnonzero(records.is_symmetric & ~records.is_transfer & ~np.isnan(records.end))
    if not len(used):
        return ahead
    rank, end = records.rank[used], records.end[used]
    _, row = np.unique(
        records.communicator[used] * (int(records.seq.max()) + 1) + records.seq[used], return_inverse=True
    )
    members, parts = np.bincount(row), np.bincount(rank, minlength=size)
    for _ in range(_ROUNDS):
        together = np.bincount(row, end - ahead[rank]) / members
        ahead = np.bincount(rank, end - together[row], minlength=size) / np.maximum(parts, 1)
    known = parts > 0
    return np.where(known, ahead - np.median(ahead[known]), 0.0)


def _waiting(records: Records, collective: Ints, lost: float) -> _Waiting:
    found = _Waiting()
    behind = _BEHIND if lost < LOST else _BEHIND_LOST
    retained = collective[~records.is_p2p[collective]]
    for communicator in np.unique(records.communicator[retained]).tolist():
        mine = retained[records.communicator[retained] == communicator]
        _wait_in(records, mine, communicator, behind, found)
    _wait_for_peers(records, found)
    return found


def _wait_in(records: Records, mine: Ints, communicator: int, behind: int, found: _Waiting) -> None:
    rank, seq = records.rank[mine], records.seq[mine]
    done = records.state[mine] == COMPLETED
    members = np.unique(rank)
    place = np.searchsorted(members, rank)
    launched, completed = np.full(len(members), -1), np.full(len(members), -1)
    np.maximum.at(launched, place, seq)
    np.maximum.at(completed, place[done], seq[done])
    # An operation that completed anywhere was launched by all: a rank far behind it is not recorded any more.
    left = int(completed.max(initial=-1))
    if (records.state[mine] == SCHEDULED).all():
        # Last launches only, as NCCL RAS knows them: that an operation is not over is known where others went on.
        launched, completed = (
            launched.astype(np.int64),
            np.where(launched < launched.max(), launched, launched - 1),
        )
        if (launched == launched.max()).all():
            return
    recorded = launched >= left - behind + 1
    for at in np.flatnonzero((launched > completed) & recorded).tolist():
        pending = seq[(place == at) & ~done & (seq > completed[at])]
        first = int(pending.min()) if len(pending) else int(launched[at])
        if first <= left and (completed >= first).sum() >= 0.5 * len(members):
            continue
        me = int(members[at])
        absent = members[recorded & (launched < first)].tolist()
        found.ranks.setdefault(me, set()).update(absent)
        for other in absent:
            known = found.about.get(other)
            found.about[other] = (communicator, first) if known is None else min(known, (communicator, first))
        if not absent:
            found.stuck.setdefault(me, set()).add((communicator, first))


def _wait_for_peers(records: Records, found: _Waiting) -> None:
    """Sends and receives: an end waits for the other one where that has nothing pending between the two."""
    retained = np.flatnonzero(records.is_p2p & records.is_transfer)
    if not len(retained):
        return
    moved_on = _completed_after(records)
    pending: dict[tuple[int, int, int], set[int]] = {}
    sides: dict[tuple[int, int], set[int]] = {}
    for at in retained.tolist():
        pair = int(records.src[at]), int(records.dst[at])
        sides.setdefault(pair, set()).add(int(records.rank[at]))
    for at in retained[records.state[retained] != COMPLETED].tolist():
        if records.start[at] < moved_on[records.rank[at]]:
            continue
        key = int(records.communicator[at]), int(records.src[at]), int(records.dst[at])
        pending.setdefault(key, set()).add(int(records.rank[at]))
    for (communicator, src, dst), ends in sorted(pending.items()):
        for me in sorted(ends):
            other = dst if me == src else src
            both = other in ends or other not in sides[src, dst]
            found.ranks.setdefault(me, set()).update(() if both else (other,))
            if both:
                found.pairs.add((src, dst))
                found.stuck.setdefault(me, set())
            else:
                found.about.setdefault(other, (communicator, -1))


def _completed_after(records: Records) -> Floats:
    """By rank, the start of the last part that completed, by its own clock."""
    last = np.full(int(records.rank.max()) + 1, -np.inf)
    done = records.state == COMPLETED
    np.maximum.at(last, records.rank[done], records.start[done])
    return last


def _usual_stall(records: Records, collective: Ints, waiting: _Waiting, least: float) -> float:
    """Seconds up to which a stall is usual, by what was resolved before and by how long all paused before this one."""
    if least <= 0:
        return 0.0
    duration = records.duration[collective]
    resolved = duration[records.is_symmetric[collective] & ~np.isnan(duration)]
    usual = least
    if len(resolved):
        usual = max(usual, min(60.0, _USUAL * float(np.percentile(resolved, 95))))
        usual = max(usual, min(_MOST_STALL, _LONGEST * float(resolved.max())))
    pause, before = _pause(records, waiting)
    if pause > max(_PAUSE, 3 * before):
        usual = max(usual, _PAUSES * pause)
    return usual


def _pause(records: Records, waiting: _Waiting) -> tuple[float, float]:
    """Duration for which the blocked ranks recorded nothing before the part that blocks them, and the usual one;
    medians."""
    pauses, usual = [], []
    order = np.lexsort((records.start, records.rank))
    for rank in sorted(waiting.ranks):
        mine = order[slice(*np.searchsorted(records.rank[order], [rank, rank + 1]))]
        pending = mine[records.state[mine] != COMPLETED]
        done = mine[records.state[mine] == COMPLETED]
        if not len(pending) or len(done) < 2:
            continue
        ends = np.fmax.accumulate(
            np.where(np.isnan(records.end[done]), records.start[done], records.end[done])
        )
        pauses.append(float(records.start[pending].max() - ends[-1]))
        usual.append(float(np.percentile(records.start[done][1:] - ends[:-1], 95)))
    if not pauses:
        return 0.0, 0.0
    return float(np.median(pauses)), float(np.median(usual))


def _ends(waiting: _Waiting) -> tuple[Counter[int], Counter[tuple[int, int]], list[int]]:
    """Ends of waiting: ranks that are not blocked and stuck operations, with the number that waits for each, and the
    blocked ranks whose waiting ends nowhere."""
    sinks: Counter[int] = Counter()
    stuck: Counter[tuple[int, int]] = Counter()
    rings: list[int] = []
    for rank in sorted(waiting.ranks):
        reached, todo = {rank}, [rank]
        while todo:
            for other in waiting.ranks.get(todo.pop(), ()):
                if other not in reached:
                    reached.add(other)
                    todo.append(other)
        ends = [one for one in reached if one not in waiting.ranks]
        held = {operation for one in reached for operation in waiting.stuck.get(one, ())}
        in_transfer = any(one in waiting.stuck for one in reached)
        sinks.update(ends)
        stuck.update(held)
        if not ends and not held and not in_transfer:
            rings.append(rank)
    return sinks, stuck, rings


def _named(records: Records, communicator: int, seq: int) -> tuple[str, str]:
    mine = (records.communicator == communicator) & (records.seq == seq)
    mine &= ~records.is_transfer
    ops = Counter(records.op[mine].tolist())
    op = min(ops, key=lambda one: (-ops[one], one)) if ops else -1
    name = records.ops[op] if op >= 0 else "a transfer"
    return SHOWN.get(name, name), records.communicators[communicator]


def _launches(records: Records, waiting: _Waiting, sinks: Mapping[int, int]) -> Sequence[Culprit]:
    found = []
    for rank, count in sorted(sinks.items(), key=lambda one: (-one[1], one[0])):
        communicator, seq = waiting.about[rank]
        op, name = _named(records, communicator, seq)
        found.append(Culprit("launch", Place("rank", rank), (), count, op, name, seq))
    return found


def _unrecorded(records: Records, waiting: _Waiting, sinks: Mapping[int, int], lost: float) -> float:
    """Expected number of members of the operations that wait for `sinks` without a report although they launched:
    each report of an open part is lost with probability `lost`, and as many were sent as the others' show."""
    expected = 0.0
    for communicator, seq in {waiting.about[rank] for rank in sinks}:
        mine = (records.communicator == communicator) & (records.state != COMPLETED)
        open_ = np.flatnonzero(mine & ((records.seq == seq) | (seq < 0)))
        members = len(np.unique(records.rank[records.communicator == communicator]))
        sent = float(np.median(records.reports[open_])) / max(1 - lost, 0.5) if len(open_) else 1.0
        expected += members * lost ** max(1.0, sent)
    return expected


def _mismatches(
    records: Records, collective: Ints, stuck: Mapping[tuple[int, int], int], blocked: int
) -> Sequence[Culprit]:
    """Ranks that launched another operation, or another size, than most at a sequence number that is stuck."""
    found = []
    for communicator, seq in sorted(stuck):
        mine = collective[
            (records.communicator[collective] == communicator) & (records.seq[collective] == seq)
        ]
        mine = mine[~records.is_p2p[mine]]
        called = [_called(records, at) for at in mine.tolist()]
        counts = Counter(called).most_common()
        if len(counts) < 2 or counts[0][1] == counts[1][1]:
            continue
        most = counts[0][0]
        odd = sorted(
            {int(records.rank[at]) for at, one in zip(mine.tolist(), called, strict=True) if one != most}
        )
        for rank in odd:
            other = next(
                one for at, one in zip(mine.tolist(), called, strict=True) if records.rank[at] == rank
            )
            name = records.communicators[communicator]
            found.append(
                Culprit("mismatch", Place("rank", rank), (), blocked, _shown(most), name, seq, _shown(other))
            )
    return found


def _called(records: Records, at: int) -> tuple[str, int]:
    """Operation and size; the size only where all ranks must have the same."""
    op = records.ops[records.op[at]]
    return op, int(records.bytes[at]) if op == "allreduce" else 0


def _shown(called: tuple[str, int]) -> str:
    name = SHOWN.get(called[0], called[0])
    return f"{name} of {called[1]:,} bytes" if called[1] else name


def _transfers(
    records: Records, waiting: _Waiting, stuck: Mapping[tuple[int, int], int]
) -> Sequence[Culprit]:
    """Connections without progress among those of the stuck operations, and sends that were received for and stay."""
    found = []
    size = int(records.rank.max()) + 1
    for (communicator, seq), count in sorted(stuck.items(), key=lambda one: (-one[1], one[0])):
        mine = np.flatnonzero(
            (records.communicator == communicator)
            & (records.seq == seq)
            & records.is_transfer
            & ~records.is_p2p
        )
        observed, hot = np.zeros((size, size), dtype=np.bool_), np.zeros((size, size), dtype=np.bool_)
        observed[records.src[mine], records.dst[mine]] = True
        open_ = mine[records.state[mine] != COMPLETED]
        hot[records.src[open_], records.dst[open_]] = True
        for pattern in _rooted(patterns(observed, hot), observed, hot):
            op, name = _named(records, communicator, seq)
            found.append(Culprit("transfer", pattern.place, pattern.alike, count, op, name, seq))
    for src, dst in sorted(waiting.pairs):
        blocked = len(waiting.ranks)
        found.append(Culprit("transfer", Place("channel", src, dst), (), blocked, "send", "", -1))
    return found


def _rooted(found: Sequence[Pattern], observed: Flags, hot: Flags) -> Sequence[Pattern]:
    """The patterns where the chain of waiting ends: in a ring a transfer waits for the one into its sender."""
    if not len(found) or hot.sum() == observed.sum() > 1:
        return ()
    is_ring = observed.sum() <= 2 * observed.any(axis=1).sum()
    if not is_ring or len(found) == 1:
        return found
    roots = [one for one in found if not any(hot[:, src].any() for src, _ in one.pairs)]
    return roots or found


def _deadlocks(records: Records, waiting: _Waiting, rings: Sequence[int]) -> Sequence[Culprit]:
    """The ranks of a ring of waiting, as one group."""
    if not rings:
        return ()
    first, *others = [rank for rank in rings if rank in waiting.about] or rings
    communicator, seq = waiting.about.get(first, (0, -1))
    op, name = _named(records, communicator, seq)
    alike = tuple(Place("rank", rank) for rank in others)
    return [Culprit("deadlock", Place("rank", first), alike, len(waiting.ranks), op, name, seq)]


def _unseen(records: Records) -> tuple[int, ...]:
    """Ranks between the others of which there is no record."""
    highest = int(records.rank.max())
    return tuple(sorted(set(range(highest + 1)) - set(records.ranks.tolist())))


def _undecided(
    records: Records,
    sinks: Mapping[int, int],
    stuck: Mapping[tuple[int, int], int],
    unseen: Sequence[int],
    found: Sequence[Culprit],
    lost: float,
    unrecorded: float,
) -> str:
    """Reason why nobody can be named, empty where somebody can."""
    ranks = len(records.ranks)
    nodes = {int(records.node[rank]) for rank in sinks}
    certain = len(sinks) == 1 and unrecorded <= _UNRECORDED
    if lost >= LOST and sinks and not certain and not any(one.nature == "mismatch" for one in found):
        names = listed(tuple(f"rank/{rank}" for rank in sorted(sinks)))
        return (
            f"{names} did not launch what others wait in, or the record of it is lost as {percent(lost)} of the "
            "others are"
        )
    if len(sinks) > max(1.0, _MANY * ranks) and (len(nodes) > 1 or -1 in nodes):
        return (
            f"{len(sinks)} of {ranks} ranks stopped together, in no one place: the job was stopped or paused"
        )
    if not found and unseen:
        return f"all ranks with records wait, and of {len(unseen)} ranks there is no record"
    if not found and stuck:
        communicator, seq = min(stuck, key=lambda one: (-stuck[one], one))
        op, name = _named(records, communicator, seq)
        return (
            f"all ranks of communicator {name} launched {op} {seq} and it does not complete; rows with `src` and `dst` "
            "are needed to tell which connection is stuck"
        )
    if not found:
        return "ranks wait for each other and the records do not say for what"
    return ""
