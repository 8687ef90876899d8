"""A window as arrays: what each pair of endpoints sent, lost and had answered when, in slices of 30 s, and who is
registered.

Slices of the history count too, numbered from the oldest; `first` is the first of the window itself. A pair is a
source, a destination and a layer.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import texts, whole
from analyzers.builtin.skeletonhunter.analyzer import BINS, SLICE
from analyzers.contract import Sums, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Mask = NDArray[np.bool_]
Pair = tuple[str, str, str]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
MIDDLE = np.log(np.sqrt(np.array([BINS[0] / 1.1, *BINS]) * np.array([*BINS, BINS[-1] * 1.1])))
"""The middle of each bin, ln of microseconds."""
WIDTH = float(np.median(np.diff(np.log(BINS))))

FEATURES = ("p25", "p50", "p75", "min", "mean", "std", "max")
MEAN, P50, P75, STD = (FEATURES.index(name) for name in ("mean", "p50", "p75", "std"))

GRACE = timedelta(minutes=1)
"""Time before an endpoint is deregistered in which its losses are those of its end: the container stops first."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A registered endpoint; `since` in seconds from the window's start."""

    name: str
    job: str
    host: str
    nic: str
    rail: int
    container: str
    since: float


@dataclass(frozen=True, slots=True, eq=False)
class Observed:
    """Arrays of shape (pairs, slices); `features` (pairs, slices, 7) in ln of microseconds, NaN without answers.

    `n`, `mean`, `var` and `skew` are answers and moments of their logarithms by window, shape (pairs, windows), the
    window itself last. `judged` marks slices in which both ends were registered.
    """

    pairs: tuple[Pair, ...]
    features: Floats
    answers: Ints
    sent: Ints
    lost: Ints
    judged: Mask
    first: int
    n: Floats
    mean: Floats
    var: Floats
    skew: Floats
    endpoints: dict[str, Endpoint]
    unregistered: int

    @property
    def now(self) -> slice:
        """The slices of the window itself."""
        return slice(self.first, self.sent.shape[1])


def observe(window: Window) -> Observed:
    """Read the window and its history; of a window without probes no pairs."""
    spans = [*window.history, window]
    start = spans[0].start
    length = max(1, -((start - window.end) // SLICE))
    offsets = [(one.start - start) // SLICE for one in spans]
    names: dict[Pair, int] = {}
    losses = [_numbered(one.sums.get("losses"), names) for one in spans]
    times = [_numbered(one.sums.get("answers"), names) for one in spans]
    order = sorted(names)
    place = np.empty(len(order), dtype=np.int64)
    place[[names[one] for one in order]] = np.arange(len(order))
    shape = (len(order), length)
    sent, lost = np.zeros(shape, dtype=np.int64), np.zeros(shape, dtype=np.int64)
    for (sums, pair), offset in zip(losses, offsets, strict=True):
        if sums is not None:
            at = place[pair], whole(sums, "slice") + offset
            sent[at] = sums.values["sent"]
            lost[at] = sums.values["lost"]
    group, bins, count = _joined(times, offsets, place, length)
    features, answers = _features(group, bins, count, shape)
    endpoints = registered(window)
    judged = _judged(order, endpoints, departures(window), window, spans, answers)
    return Observed(
        tuple(order),
        features,
        answers,
        sent,
        lost,
        judged & (sent > 0),
        offsets[-1],
        *_moments(times, place),
        endpoints,
        int(((sent > 0) & ~judged)[:, offsets[-1] :].any(axis=1).sum()),
    )


def _numbered(sums: Sums | None, names: dict[Pair, int]) -> tuple[Sums | None, Ints]:
    """The number of each row's pair; new pairs are added to `names`."""
    if sums is None or not sums.rows:
        return None, np.zeros(0, dtype=np.int64)
    columns = [texts(sums, key) for key in ("src", "dst", "layer")]
    # Millions of rows of known pairs: mapped without a step of Python for each.
    number = names.__getitem__
    try:
        return sums, np.fromiter(map(number, zip(*columns, strict=True)), np.int64, sums.rows)
    except KeyError:
        for one in dict.fromkeys(zip(*columns, strict=True)):
            names.setdefault(one, len(names))
    return sums, np.fromiter(map(number, zip(*columns, strict=True)), np.int64, sums.rows)


def _joined(
    times: list[tuple[Sums | None, Ints]], offsets: list[int], place: Ints, length: int
) -> tuple[Ints, Ints, Ints]:
    """Group (pair and slice), bin and count of every row: rows of a group follow each other by bin."""
    parts: list[tuple[Ints, Ints, Ints]] = [(np.zeros(0, dtype=np.int64),) * 3]
    last, together = -1, False
    for (sums, pair), offset in zip(times, offsets, strict=True):
        if sums is not None:
            slices, bins = whole(sums, "slice") + offset, whole(sums, "bin")
            group, count = place[pair] * length + slices, np.asarray(sums.values["answers"], dtype=np.int64)
            parts.append(_in_order(group, bins, count))
            together |= int(slices.min()) <= last
            last = max(last, int(slices.max()))
    group, bins, count = (np.concatenate(column) for column in zip(*parts, strict=True))
    # Windows share a slice if their length is no multiple of it.
    return _in_order(group, bins, count) if together else (group, bins, count)


def _in_order(group: Ints, bins: Ints, count: Ints) -> tuple[Ints, Ints, Ints]:
    """The same rows by group, then bin: most windows have them so."""
    key = group * (len(BINS) + 1) + bins
    if not (np.diff(key) < 0).any():
        return group, bins, count
    order = np.argsort(key, kind="stable")
    return group[order], bins[order], count[order]


def _features(group: Ints, bins: Ints, count: Ints, shape: tuple[int, int]) -> tuple[Floats, Ints]:
    """Percentiles, least, mean, spread and most of the answers of each pair and slice, in ln of microseconds."""
    features = np.full((shape[0] * shape[1], len(FEATURES)), np.nan)
    answers = np.bincount(group, count, minlength=len(features)).astype(np.int64)
    if len(group):
        start = np.flatnonzero(np.diff(group, prepend=-1))
        used = group[start]
        total, value = answers[used].astype(np.float64), MIDDLE[bins]
        reached = np.cumsum(count)
        before = reached[start] - count[start]
        for at, share in enumerate((0.25, 0.5, 0.75)):
            wanted = before + share * total
            row = np.searchsorted(reached, wanted)
            inside = (wanted - (reached[row] - count[row])) / count[row]
            features[used, at] = value[row] + (inside - 0.5) * WIDTH
        end = np.append(start[1:], len(group)) - 1
        mean = np.add.reduceat(count * value, start) / total
        square = np.add.reduceat(count * value**2, start) / total
        features[used, 3], features[used, 6] = value[start], value[end]
        features[used, MEAN] = mean
        features[used, 5] = np.sqrt(np.maximum(square - mean**2, 0.0))
    return features.reshape(*shape, len(FEATURES)), answers.reshape(shape)


def _moments(times: list[tuple[Sums | None, Ints]], place: Ints) -> tuple[Floats, Floats, Floats, Floats]:
    """Answers, and mean, variance and skewness of their logarithms, by pair and window."""
    shape = len(place), len(times)
    n, mean, var, skew = np.zeros(shape), np.full(shape, np.nan), np.full(shape, np.nan), np.zeros(shape)
    for at, (sums, pair) in enumerate(times):
        if sums is None:
            continue
        weight, value = np.asarray(sums.values["answers"], dtype=np.float64), MIDDLE[whole(sums, "bin")]
        own = place[pair]
        n[:, at] = np.bincount(own, weight, minlength=len(place))
        total = np.maximum(n[:, at], 1.0)
        centre = np.bincount(own, weight * value, minlength=len(place)) / total
        off = value - centre[own]
        mean[:, at] = np.where(n[:, at] > 0, centre, np.nan)
        square = np.bincount(own, weight * off**2, minlength=len(place)) / total
        var[:, at] = np.where(n[:, at] > 0, np.maximum(square, WIDTH**2 / 12), np.nan)
        skew[:, at] = (
            np.bincount(own, weight * off**3, minlength=len(place)) / total / np.maximum(square, 1e-9) ** 1.5
        )
    return n, mean, var, skew


def registered(window: Window) -> dict[str, Endpoint]:
    """Endpoints that are known in the window, by their name and by that of their network card."""
    found: dict[str, Endpoint] = {}
    for one in (*window.history, window):
        if (sums := one.sums.get("endpoints")) is None:
            continue
        for row in _rows(sums):
            since = _seconds(int(row["time"]), window.start)
            end = Endpoint(
                row["endpoint"],
                row["job"],
                row["host"],
                row["nic"],
                int(row["rail"]),
                row["container"],
                since,
            )
            found[end.name] = end
    found.update({one.nic: one for one in list(found.values()) if one.nic not in found})
    return found


def departures(window: Window) -> dict[str, list[float]]:
    """Times at which endpoints were deregistered, seconds from the window's start."""
    gone: dict[str, list[float]] = {}
    for one in (*window.history, window):
        if (sums := one.sums.get("changes")) is not None:
            for row in _rows(sums):
                if not row["active"]:
                    gone.setdefault(row["endpoint"], []).append(_seconds(int(row["time"]), window.start))
    return gone


def _rows(sums: Sums) -> Iterator[dict[str, Any]]:
    columns = [key.tolist() if isinstance(key, np.ndarray) else key for key in sums.keys.values()]
    for values in zip(*columns, strict=True):
        yield dict(zip(sums.keys, values, strict=True))


def _seconds(microseconds: int, start: datetime) -> float:
    return (_EPOCH + timedelta(microseconds=microseconds) - start).total_seconds()


def _judged(
    pairs: list[Pair],
    endpoints: dict[str, Endpoint],
    gone: dict[str, list[float]],
    window: Window,
    spans: list[Window],
    answers: Ints,
) -> Mask:
    """In which slices both ends were registered. Without any registration all are; an end that nobody registered counts
    from its first answer on.
    """
    size, length = answers.shape
    judged = np.ones((size, length), dtype=bool)
    if not endpoints and not gone:
        return judged
    begin = (spans[0].start - window.start).total_seconds()
    starts = begin + SLICE.total_seconds() * np.arange(length, dtype=np.float64)
    answered = np.maximum.accumulate(answers > 0, axis=1)
    known: dict[str, Mask] = {}
    for at, (src, dst, _) in enumerate(pairs):
        for end in (src, dst):
            if end not in known and (end in endpoints or end in gone):
                one = endpoints.get(end)
                known[end] = _there(one, gone.get(one.name if one else end, []), starts)
            judged[at] &= known.get(end, answered[at])
    return judged


def _there(end: Endpoint | None, gone: list[float], starts: Floats) -> Mask:
    """The slices, by their start in seconds, in which an endpoint was registered all the time."""
    there = np.ones(len(starts), dtype=bool) if end is None else starts >= end.since
    for when in gone:
        back = end.since if end is not None and end.since > when else np.inf
        there &= (starts + SLICE.total_seconds() + GRACE.total_seconds() <= when) | (starts >= back)
    return there
