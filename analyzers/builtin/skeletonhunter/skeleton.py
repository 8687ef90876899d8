"""Traffic skeleton of a training job, read off the throughput of its network cards, and the ping list of that.

Cards at the same position of a pipeline burst at the same times in all data-parallel replicas. Features are
spectrograms of short windows, so that the time of a burst is kept. Hosts are clustered by the mean distance of their
rails (average linkage), then each cluster is split by rail, so that no cluster holds two cards of a host. The published
constraints, equal sizes whose number divides that of the hosts, hold for any equal partition; of these the finest is
taken in which every cluster is apart from the others (mean silhouette, Rousseeuw 1987, of `separation` or more).

Where agents read counters at phases of their own, the running sums are read anew at common moments and smoothed
(binomial, 3 samples), because interpolation smooths each host by its phase. What is left of phases is up to `APART`:
of clusters that are nearer, but not as near as those of one stage (`NEAR`), no skeleton is stated.

With TP inside the host, rails of a host that burst alike are one tensor-parallel group, or replicas of one stage beside
each other: those have times of their own, so that what their rails differ by within the host follows the groups, and
is as much as hosts of one stage differ by. Cards of one rail are not told from noise: TP 1 looks like TP of the whole
host, as does a job whose replicas only reduce gradients, all at the same time. Clusters are ordered by the lag of their
large bursts; neighbours in that order are pipeline stages, and the replica of a host in the next stage is the one whose
received bytes follow what it sends (assignment by correlation), or that of the same rank where none does.

No skeleton is stated where sizes cannot be equal, both halves of the time disagree, or cards of one cluster send
different amounts, as mixtures of experts do: then the basic list stays (same rail, other hosts). Amounts differ by
block of time (`uneven`), or less but always by the same (`LASTING`): the covariance of what cards have beside their
cluster in both halves of the time, which noise and the edges of blocks leave at 0.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.paths import texts, whole
from analyzers.builtin.skeletonhunter.analyzer import SAMPLE
from analyzers.contract import Params, Window

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

SKELETON = "Skeleton of job "
"""The title of a table of hosts with their cards, stage and replica, before the job's name. Ping lists read it."""
SPAN = 900.0
"""Seconds of traffic that are looked at, at most."""
LEAST = 300
"""Samples that a job needs."""
OFTEN = 0.2
"""Seconds between samples up to which stages of all dense jobs of the second generator are told apart."""
SEGMENT, HOP = 8, 4
"""Samples of a window of the spectrogram, and between windows."""
ALIKE = 0.5
"""Mean distance of hosts (2: uncorrelated) up to which they all are one cluster."""
APART, NEAR = 0.1, 0.03
"""Least mean distance of two clusters where agents read at phases of their own, and of two groups of rails; the one up
to which they are the same."""
BLOCK = 30.0
"""Seconds over which the bytes of cards of one cluster are compared."""
LAG = 20.0
"""Seconds by which stages may be apart."""
LASTING = 0.01
"""Usual deviation of a card from its cluster in all that it moves, from which a job is not dense."""
FOLLOWS, OWN = 0.2, 0.25
"""By how much the correlation of rails of one replica is above that of others, and the least share of what hosts of a
stage differ by that replicas of one host do: halves of a host that differ by their sockets do by less."""
SHARE, SMALL = 0.05, 16
"""Most of the full mesh that a ping list takes, where more than so many replicas probe each other."""


@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """The traffic of one job: bytes by host, rail and sample, shape (hosts, rails, samples); `step` in seconds.
    `unaligned`: cards were read at moments that differ by more than a quarter of a step.
    """

    job: str
    hosts: tuple[str, ...]
    nics: tuple[tuple[str, ...], ...]
    tx: Floats
    rx: Floats
    step: float
    fault: str = ""
    unaligned: bool = False


@dataclass(frozen=True, slots=True, eq=False)
class Skeleton:
    """Degrees of a job, with the cluster of each host in the order of the pipeline and the replica of each host.
    `reason` says why there is none; `silhouette` is that of the clustering, `uneven` the spread of traffic in clusters.
    """

    series: Series
    dp: int = 0
    pp: int = 0
    tp: int = 0
    confidence: float = 0.0
    silhouette: float = 0.0
    uneven: float = 0.0
    stage: Ints | None = None
    replica: Ints | None = None
    reason: str = ""


def jobs(window: Window) -> list[Series]:
    """The traffic of each job, by name; `fault` of a series says why it cannot be used."""
    parts: dict[str, list[tuple[Any, ...]]] = {}
    for one in (*window.history, window):
        if (sums := one.sums.get("traffic")) is None:
            continue
        offset = (one.start - window.end) // SAMPLE
        columns = (texts(sums, "job"), texts(sums, "host"), texts(sums, "nic"), whole(sums, "rail").tolist())
        slices = (whole(sums, "slice") + offset).tolist()
        values = (np.asarray(sums.values[name], dtype=np.float64).tolist() for name in ("tx", "rx"))
        for job, host, nic, rail, at, tx, rx in zip(*columns, slices, *values, strict=True):
            if at * SAMPLE.total_seconds() >= -SPAN:
                parts.setdefault(job, []).append((host, rail, nic, at, tx, rx))
    return [_series(job, rows) for job, rows in sorted(parts.items())]


def _series(job: str, rows: list[tuple[Any, ...]]) -> Series:
    cards: dict[str, dict[int, str]] = {}
    for host, rail, nic, *_ in rows:
        cards.setdefault(host, {})[rail] = nic
    hosts = tuple(sorted(cards, key=natural))
    rails = sorted({rail for one in cards.values() for rail in one})
    nics = tuple(tuple(one for _, one in sorted(cards[host].items())) for host in hosts)
    none = np.zeros((len(hosts), len(rails), 0))
    lacking = [host for host in hosts if sorted(cards[host]) != rails]
    if lacking:
        why = f"{len(lacking)} of {len(hosts)} hosts have not the same rails as the others"
        return Series(job, hosts, nics, none, none, 0.0, why)
    host_at, rail_at = ({one: at for at, one in enumerate(names)} for names in (hosts, rails))
    host, rail = (np.array([at[row[i]] for row in rows]) for i, at in ((0, host_at), (1, rail_at)))
    times = np.array([row[3] for row in rows], dtype=np.int64)
    times -= times.min()
    card = host * len(rails) + rail
    order = np.lexsort((times, card))
    gaps = np.diff(times[order])[np.diff(card[order]) == 0]
    stride = max(1, int(np.median(gaps))) if len(gaps) else 1
    samples = int(times.max()) // stride + 1
    if samples < LEAST:
        why = f"{samples} samples of traffic; {LEAST} are needed"
        return Series(job, hosts, nics, none, none, 0.0, why)
    values = np.array([row[4:] for row in rows], dtype=np.float64)
    counters = np.zeros((2, len(hosts) * len(rails), samples))
    phases = []
    for part in np.split(order, np.flatnonzero(np.diff(card[order])) + 1):
        phases.append(float(np.median(times[part] % stride)))
        counters[:, card[part[0]]] = resampled(times[part], values[part].T, stride, samples)
    tx, rx = counters.reshape(2, len(hosts), len(rails), samples)
    off = np.abs(np.array(phases) - phases[0])
    unaligned = bool(np.minimum(off, stride - off).max() > stride / 4)
    return Series(job, hosts, nics, tx, rx, stride * SAMPLE.total_seconds(), unaligned=unaligned)


def resampled(times: Ints, counters: Floats, stride: int, samples: int) -> Floats:
    """Bytes that a card moved between moments that are the same for all cards; shape (counters, samples).

    `times` are the slices of its rows, ascending, `counters` the bytes of each row, shape (counters, rows). Agents read
    at phases of their own: a row's bytes are spread over the time since the row before. Of a row that is missing the
    bytes are taken for the mean of those beside it.
    """
    width = np.diff(times, prepend=times[0] - stride)
    whole = width <= 1.5 * stride
    own = np.where(whole, width, stride)
    rate = counters / np.maximum(own, 1)
    lost = (rate + np.roll(rate, 1, axis=1)) / 2 * (width - own)
    total = np.cumsum(counters + lost, axis=1)
    moments = np.sort(np.concatenate([times, times[~whole] - stride]))
    known = np.concatenate([times, times[~whole] - stride])
    sums = np.concatenate([total, (total - counters)[:, ~whole]], axis=1)[:, np.argsort(known)]
    edges = np.arange(-1, samples) * stride
    return np.array([np.diff(np.interp(edges, moments, one, left=0.0)) for one in sums])


def natural(name: str) -> list[tuple[int, str]]:
    """A key that sorts h2 before h10."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split(r"(\d+)", name)]


def infer(series: Series, params: Params) -> Skeleton:
    """The skeleton of a job, or the reason why there is none, with the sampling that it needs if that may be why."""
    found = _inferred(series, params)
    if found.stage is not None or not series.unaligned or series.step <= OFTEN:
        return found
    why = (
        f"counters are read every {series.step:g} s, on each host at other moments, and stages of a pipeline may "
        f"differ by less: read them every {OFTEN:g} s, or at the same moments on all hosts"
    )
    return replace(found, reason=f"{found.reason}; {why}")


def _inferred(series: Series, params: Params) -> Skeleton:
    if series.fault:
        return Skeleton(series, reason=series.fault)
    least = float(params["separation"])
    half = series.tx.shape[2] // 2
    parts = (slice(None), slice(0, half), slice(half, None))
    distances = [_distance(series.tx[:, :, part], series.unaligned) for part in parts]
    found = [_clusters(one, least, series.unaligned) for one in distances]
    (labels, silhouette, hardly), first, second = found
    count = int(labels.max()) + 1
    same = [_agreement(labels, one) for one, *_ in (first, second)]
    groups = _rail_groups(series, least)
    uneven, lasting = _unevenness(series, labels), _lasting(series, labels)
    none = Skeleton(series, silhouette=silhouette, uneven=uneven)
    if count == 1 and float(np.mean(_off_diagonal(distances[0]))) > ALIKE:
        return replace(none, reason="hosts burst neither alike nor in groups of equal size")
    if uneven > float(params["uneven"]):
        why = f"cards of one cluster differ by {uneven:.0%} in what they send, as in mixtures of experts"
        return replace(none, reason=why)
    if lasting > LASTING:
        why = (
            f"cards of one cluster always differ by {lasting:.1%} in what they move, as in mixtures of experts or "
            "stages that are not told apart"
        )
        return replace(none, reason=why)
    if min(same) < 1.0:
        return replace(none, reason="the first and the second half of the time give other clusters")
    if hardly:
        remedy = "" if series.step > OFTEN else ": read counters at the same moments on all hosts"
        return replace(none, reason=f"groups of hosts are hardly apart{remedy}")
    stage = _ordered(series, labels)
    beside = _replicas_of_host(series, labels, groups)
    return replace(
        none,
        dp=len(labels) // count * beside,
        pp=count * groups,
        tp=series.tx.shape[1] // (groups * beside),
        confidence=_confidence(count, silhouette, uneven, least, float(params["uneven"])),
        stage=stage,
        replica=_replicas(series, stage),
    )


def _confidence(count: int, silhouette: float, uneven: float, least: float, most: float) -> float:
    """Confidence of the clustering: 0 where none would be stated, 1 at twice the separation and no spread."""
    apart = 1.0 if count == 1 else min(1.0, (silhouette - least) / max(least, 1e-9))
    return round(max(0.0, min(apart, 1 - uneven / most)), 3)


def _spectrograms(counter: Floats, unaligned: bool) -> Floats:
    """Features of each card: log(1 + magnitude) of short windows, centred, of length 1; shape (hosts, rails, n)."""
    if unaligned:
        beside = np.pad(counter, ((0, 0), (0, 0), (1, 1)), mode="edge")
        counter = (beside[:, :, :-2] + 2 * beside[:, :, 1:-1] + beside[:, :, 2:]) / 4
    scaled = counter / np.maximum(np.quantile(counter, 0.95, axis=2, keepdims=True), 1.0)
    windows = np.lib.stride_tricks.sliding_window_view(scaled, SEGMENT, axis=2)[:, :, ::HOP]
    spectrum = np.log1p(np.abs(np.fft.rfft(windows * np.hanning(SEGMENT + 1)[:-1], axis=3)))[
        ..., : SEGMENT // 2
    ]
    flat = spectrum.reshape(*counter.shape[:2], -1).astype(np.float32)
    flat -= flat.mean(axis=2, keepdims=True)
    norm = np.linalg.norm(flat, axis=2, keepdims=True)
    return np.asarray(flat / np.maximum(norm, 1e-9), dtype=np.float64)


def _distance(counter: Floats, unaligned: bool) -> Floats:
    """Squared distances of hosts, mean over their rails; shape (hosts, hosts)."""
    features = _spectrograms(counter, unaligned)
    alike = np.einsum("arf,brf->ab", features, features, optimize=True) / counter.shape[1]
    out = np.maximum(2 - 2 * alike, 0.0)
    np.fill_diagonal(out, 0.0)
    return np.asarray((out + out.T) / 2)


def _off_diagonal(square: Floats) -> Floats:
    return square[~np.eye(len(square), dtype=bool)] if len(square) > 1 else np.zeros(1)


def _clusters(distance: Floats, least: float, unaligned: bool) -> tuple[Ints, float, bool]:
    """The finest equal partition whose clusters are apart, with its mean silhouette; one cluster without any. Third,
    whether a finer one is neither that nor the chance of phases.
    """
    from scipy.cluster.hierarchy import fcluster, linkage
    from scipy.spatial.distance import squareform

    size = len(distance)
    best = np.zeros(size, dtype=np.int64), 0.0, False
    if size < 4:
        return best
    tree = linkage(squareform(distance, checks=False), "average")
    for count in range(2, size // 2 + 1):
        if size % count:
            continue
        labels: Ints = np.asarray(fcluster(tree, count, "maxclust"), dtype=np.int64) - 1
        if int(labels.max()) + 1 != count:
            continue
        labels = _balanced(distance, labels, count)
        each = silhouettes(distance, labels)
        near = _nearest(distance, labels) if unaligned else np.inf
        if min(each[labels == one].mean() for one in range(count)) >= least and near >= APART:
            best = labels, float(each.mean()), False
        elif unaligned and each.mean() >= least and near >= NEAR:
            best = *best[:2], True
    return best


def _nearest(distance: Floats, labels: Ints) -> float:
    """The mean distance of the two clusters that are nearest to each other."""
    member = np.eye(int(labels.max()) + 1)[labels]
    sizes = member.sum(axis=0)
    mean = member.T @ distance @ member / np.outer(sizes, sizes)
    return float(_off_diagonal(np.asarray(mean)).min())


def _balanced(distance: Floats, labels: Ints, count: int) -> Ints:
    """The equal partition next to a clustering: hosts are assigned to the clusters' means, as many to each."""
    from scipy.optimize import linear_sum_assignment

    size = len(labels) // count
    for _ in range(5):
        if (np.bincount(labels, minlength=count) == size).all():
            return labels
        member = np.eye(count)[labels]
        cost = distance @ member / np.maximum(member.sum(axis=0), 1)
        row, seat = linear_sum_assignment(np.repeat(cost, size, axis=1))
        labels = (seat[np.argsort(row)] // size).astype(np.int64)
    return labels


def silhouettes(distance: Floats, labels: Ints) -> Floats:
    """The silhouette of each element (Rousseeuw 1987); shape (elements,)."""
    count = int(labels.max()) + 1
    member = np.eye(count)[labels]
    sizes = member.sum(axis=0)
    mean = distance @ member / sizes
    own = distance @ member
    at = np.arange(len(labels))
    inside = own[at, labels] / np.maximum(sizes[labels] - 1, 1)
    mean[at, labels] = np.inf
    outside = mean.min(axis=1)
    alone = sizes[labels] == 1
    return np.asarray(
        np.where(alone, 0.0, (outside - inside) / np.maximum(np.maximum(outside, inside), 1e-12))
    )


def _agreement(one: Ints, other: Ints) -> float:
    """The share of pairs of hosts that two clusterings put together or apart alike."""
    return float(((one[:, None] == one) == (other[:, None] == other)).mean())


def _rail_groups(series: Series, least: float) -> int:
    """Number of groups of neighbouring rails of a host that burst differently."""
    features, rails = _spectrograms(series.tx, series.unaligned), series.tx.shape[1]
    distance = np.maximum(
        2 - 2 * np.einsum("hrf,hsf->rs", features, features, optimize=True) / len(features), 0.0
    )
    np.fill_diagonal(distance, 0.0)
    best = 1
    for groups in range(2, rails // 2 + 1):
        if rails % groups == 0:
            labels = np.arange(rails) // (rails // groups)
            each = silhouettes(distance, labels)
            if min(each[labels == one].mean() for one in range(groups)) >= least and (
                _nearest(distance, labels) >= APART
            ):
                best = groups
    return best


def _replicas_of_host(series: Series, labels: Ints, groups: int) -> int:
    """Number of replicas of a stage that stand beside each other in a host, the rails of each one after the other."""
    hosts, rails, samples = series.tx.shape
    width, best = rails // groups, 1
    counter = series.tx.reshape(hosts, groups, width, samples)
    own = counter - counter.mean(axis=2, keepdims=True)
    own /= np.maximum(np.linalg.norm(own, axis=3, keepdims=True), 1e-9)
    # The median of the hosts: what one card has for itself, a checkpoint or a data loader, is no matter.
    alike = np.median(np.einsum("hgrt,hgst->hgrs", own, own, optimize=True), axis=(0, 1))
    for count in range(2, width // 2 + 1):
        if width % count:
            continue
        replica = np.arange(width) // (width // count)
        same = replica[:, None] == replica
        inside = alike[same & ~np.eye(width, dtype=bool)].min()
        if inside - alike[~same].max() >= FOLLOWS and (
            series.unaligned or _own_share(counter, labels, count) >= OWN
        ):
            best = count
    return best


def _own_share(counter: Floats, labels: Ints, count: int) -> float:
    """The variance between `count` parts of a host as a share of that between hosts of a cluster; of `counter` by host,
    group, rail and sample."""
    parts = counter.reshape(*counter.shape[:2], count, -1, counter.shape[3]).mean(axis=3)
    inside = parts.var(axis=2, ddof=1).mean(axis=(1, 2))
    beside = [
        parts[labels == one].var(axis=0, ddof=1).mean()
        for one in range(int(labels.max()) + 1)
        if np.count_nonzero(labels == one) > 1
    ]
    return float(np.median(inside) / max(float(np.median(beside)), 1e-9)) if beside else 0.0


def _lasting(series: Series, labels: Ints) -> float:
    """The usual share by which a card always sends more or less than its cluster and rail, or receives."""
    return max(_always(counter, labels) for counter in (series.tx, series.rx))


def _always(counter: Floats, labels: Ints) -> float:
    half, off = counter.shape[2] // 2, []
    for one in range(int(labels.max()) + 1):
        mine = counter[labels == one]
        if len(mine) > 2:
            sums = np.stack([mine[:, :, :half].sum(axis=2), mine[:, :, half:].sum(axis=2)])
            off.append((sums / np.maximum(np.median(sums, axis=1, keepdims=True), 1.0) - 1).reshape(2, -1))
    if not off:
        return 0.0
    both = np.concatenate(off, axis=1)
    wide = (
        3 * 1.4826 * np.median(np.abs(both - np.median(both, axis=1, keepdims=True)), axis=1, keepdims=True)
    )
    first, second = np.clip(both, -wide, wide)
    return float(np.sqrt(max(0.0, float(np.mean(first * second)))))


def _unevenness(series: Series, labels: Ints) -> float:
    """The usual spread of what cards of one cluster and rail send in `BLOCK` seconds, as a share of their mean, or of
    what they receive if that is more: experts get different shares of tokens that all cards send alike.
    """
    return max(_spread(counter, series.step, labels) for counter in (series.tx, series.rx))


def _spread(counter: Floats, step: float, labels: Ints) -> float:
    length = max(1, round(BLOCK / step))
    blocks = counter.shape[2] // length
    sums = counter[:, :, : blocks * length].reshape(*counter.shape[:2], blocks, length).sum(axis=3)
    spreads = []
    for one in range(int(labels.max()) + 1):
        mine = sums[labels == one]
        if len(mine) > 1:
            spreads.append(mine.std(axis=0, ddof=1) / np.maximum(mine.mean(axis=0), 1.0))
    return float(np.median(np.concatenate([one.ravel() for one in spreads]))) if spreads else 0.0


def _ordered(series: Series, labels: Ints) -> Ints:
    """Labels renumbered by the lag of the large bursts of each cluster."""
    count, most = int(labels.max()) + 1, round(LAG / series.step)
    means = np.array([series.tx[labels == one].mean(axis=(0, 1)) for one in range(count)])
    large = np.maximum(means - np.quantile(means, 0.7, axis=1, keepdims=True), 0.0)
    large -= large.mean(axis=1, keepdims=True)
    size = 2 * large.shape[1]
    spectrum = np.fft.rfft(large, size, axis=1)
    lags = []
    for one in range(count):
        cross = np.fft.irfft(spectrum[one] * np.conj(spectrum[0]), size)
        window = np.concatenate([cross[-most:], cross[: most + 1]])
        lags.append(int(np.argmax(window)) - most)
    rank = np.argsort(np.argsort(lags, kind="stable"), kind="stable")
    return rank[labels].astype(np.int64)


def _replicas(series: Series, stage: Ints) -> Ints:
    """The replica of each host: along the pipeline by who receives what the one before sends, else by rank."""
    from scipy.optimize import linear_sum_assignment

    count = int(stage.max()) + 1
    replica = np.zeros(len(stage), dtype=np.int64)
    groups = [np.flatnonzero(stage == one) for one in range(count)]
    for group in groups:
        replica[group] = np.arange(len(group))
    for one, other in pairwise(groups):
        alike = sum(
            _residuals(a[one]) @ _residuals(b[other]).T
            for a, b in ((series.tx, series.rx), (series.rx, series.tx))
        )
        row, column = linear_sum_assignment(-np.asarray(alike))
        scale = float(np.std(alike)) or 1.0
        paired = np.asarray(alike)[row, column].mean() - float(np.mean(alike))
        follows = paired > 1.5 * scale or len(one) < 3
        replica[other[column if follows else row]] = replica[one[row]]
    return replica


def _residuals(counter: Floats) -> Floats:
    """Traffic of hosts beside the mean of their cluster, of length 1; shape (hosts, samples)."""
    mean = counter.mean(axis=1)
    own = mean - mean.mean(axis=0)
    return np.asarray(own / np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-9))


def peers(
    nics: Sequence[Sequence[str]], stage: Sequence[int] | None, replica: Sequence[int] | None
) -> dict[str, tuple[str, ...]]:
    """The ping list: whom each card probes, from the cards of each host in the order of their rails. Without a skeleton
    the cards of the same rail on other hosts.
    """
    size, cards = len(nics), sum(len(one) for one in nics)
    if stage is None or replica is None:
        near = [[other for other in range(size) if other != one] for one in range(size)]
    else:
        stages, replicas = np.array(stage, dtype=np.int64), np.array(replica, dtype=np.int64)
        near = [_near(stages, replicas, one, int(SHARE * (cards - 1))) for one in range(size)]
    return {
        card: tuple(nics[other][rail] for other in near[one] if rail < len(nics[other]))
        for one in range(size)
        for rail, card in enumerate(nics[one])
    }


def _near(stage: Ints, replica: Ints, one: int, most: int) -> list[int]:
    """Hosts that one communicates with: replicas of its stage, and the stages beside it. Of more than `most` those at
    distances of 1, 2, 4, ... along the ring of replicas.
    """
    beside = np.flatnonzero((np.abs(stage - stage[one]) == 1) & (replica == replica[one]))
    ring = np.flatnonzero(stage == stage[one])
    ring = ring[np.argsort(replica[ring])]
    others = ring[ring != one]
    if len(others) + len(beside) > most and len(ring) > SMALL:
        at, steps = int(np.flatnonzero(ring == one)[0]), 2 ** np.arange(int(np.log2(len(ring))))
        others = np.unique(ring[np.concatenate([(at + steps) % len(ring), (at - steps) % len(ring)])])
        others = others[others != one]
    return sorted({*others.tolist(), *beside.tolist()})


def share_of_mesh(list_of: dict[str, tuple[str, ...]]) -> float:
    """Share of all ordered pairs of cards that is on a ping list."""
    size = len(list_of)
    return sum(len(one) for one in list_of.values()) / max(size * (size - 1), 1)
