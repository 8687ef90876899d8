"""Scores of parts, batches and firmware over several sources, with the false-discovery rate bounded."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from analyzers.builtin.stats.probability import q_values
from incidents.domain.lemons.attempts import LEAST_EXPECTED, Attempts, Judged, judge
from incidents.domain.lemons.rates import (
    Floats,
    fit_null,
    middle_p_values,
    p_values,
    ratio_interval,
)

LEAST_PEERS = 20
"""Parts of a kind with enough exposure, below which nothing is judged."""
LEAST_FAILURES = 20
"""Failures of all parts of a kind together, below which nothing is judged."""
LEAST_OWN_FAILURES = 3
LEAST_MEMBERS = 5
"""Parts of a batch or firmware, below which it is not judged."""
LARGEST_SHARE = 0.5
"""Share of the fleet above which a batch or firmware has too few others to be compared with."""
CAPPED = 2.0
"""Normal score at which a part's word about its batch ends: one lemon does not make a bad batch."""


@dataclass(frozen=True, slots=True, eq=False)
class Counted:
    """A source that counts failures of single parts: counts and exposure, both of shape (parts,)."""

    counts: Floats
    exposure: Floats


Source = Counted | Attempts


@dataclass(frozen=True, slots=True)
class Evidence:
    """Counts of one source for a part: its failures and those that its peers would have had."""

    source: str
    failures: float
    expected: float
    p_value: float


@dataclass(frozen=True, slots=True)
class Scored:
    """A part, batch or firmware. `ratio` is observed over expected failures in the source that speaks most against it
    (the lemon score), with its 95 % interval. `members` counts the parts of a batch or firmware, 0 for a part; `alike`
    are the labels with the very same members."""

    name: str
    ratio: float
    low: float
    high: float
    p_value: float
    q_value: float
    lemon: bool
    evidence: tuple[Evidence, ...] = ()
    members: int = 0
    alike: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Fleet:
    """Results for the parts of one kind. `parts` and `groups` have the lowest p-value first; `thin` names the
    sources that hold too little to judge, with the reason; `spread` is, by source, the squared coefficient of
    variation of healthy parts' rates."""

    kind: str
    size: int
    judged: int
    parts: tuple[Scored, ...] = ()
    groups: tuple[Scored, ...] = ()
    thin: Mapping[str, str] = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)

    @property
    def lemons(self) -> tuple[Scored, ...]:
        return tuple(one for one in (*self.parts, *self.groups) if one.lemon)


@dataclass(frozen=True, slots=True, eq=False)
class _Judged:
    """One source: by part failures, expected failures and p-value (nan: not judged), each (parts,). `normal` are the
    parts' normal scores, None where `shared` attempts are judged."""

    failures: Floats
    expected: Floats
    p: Floats
    spread: float
    normal: Floats | None = None
    shared: Judged | None = None


def score_fleet(
    kind: str,
    names: Sequence[str],
    sources: Mapping[str, Source],
    labels: Mapping[str, Sequence[str]],
    level: float = 0.05,
    least_ratio: float = 1.5,
) -> Fleet:
    """The lemons among parts of one kind. `labels` are groups such as `batch A7`, with their members. `level` bounds
    the share of false ones among the named parts, and again among the named groups. `least_ratio` is the excess below
    which nothing is named, however certain."""
    found: dict[str, _Judged] = {}
    thin: dict[str, str] = {}
    for source, data in sources.items():
        reason = _too_thin(data)
        if reason:
            thin[source] = reason
        else:
            found[source] = _judged(data, level)
    if not found:
        return Fleet(kind, len(names), 0, thin=thin)
    tables = list(found.values())
    p = _combined(np.stack([one.p for one in tables]))
    tested = np.flatnonzero(~np.isnan(p))
    q = np.full(len(names), np.nan)
    q[tested] = q_values(p[tested], len(tested))
    parts = [
        _scored_part(names[n], n, found, float(p[n]), float(q[n]), level, least_ratio)
        for n in tested.tolist()
    ]
    return Fleet(
        kind,
        len(names),
        len(tested),
        tuple(sorted(parts, key=lambda one: (one.p_value, one.name))),
        _groups(names, found, labels, level, least_ratio),
        thin,
        {source: one.spread for source, one in found.items()},
    )


def _too_thin(data: Source) -> str:
    if isinstance(data, Attempts):
        mean = data.per_node().mean
        total, peers = float(data.failures.sum()), int((mean >= LEAST_EXPECTED).sum())
    else:
        total, peers = float(data.counts.sum()), int((data.exposure > 0).sum())
    if total < LEAST_FAILURES:
        return f"{total:g} failures of the {LEAST_FAILURES} that a comparison needs"
    if peers < LEAST_PEERS:
        return f"{peers} parts with enough exposure of the {LEAST_PEERS} that a comparison needs"
    return ""


def _judged(data: Source, level: float) -> _Judged:
    from scipy.special import ndtri

    if isinstance(data, Attempts):
        shared = judge(data, level)
        return _Judged(shared.failures, shared.expected, shared.p, shared.spread, shared=shared)
    used = data.exposure > 0
    null = fit_null(data.counts[used], data.exposure[used])
    p, middle = np.full(len(used), np.nan), np.full(len(used), 0.5)
    p[used] = p_values(null, data.counts[used], data.exposure[used])
    middle[used] = middle_p_values(null, data.counts[used], data.exposure[used])
    expected = null.rate * data.exposure
    return _Judged(data.counts, expected, p, null.spread, normal=np.asarray(-ndtri(middle)))


def _combined(p: Floats) -> Floats:
    """Bonferroni over the sources that judged a part: valid however they depend on each other. `p` has the shape
    (sources, parts), nan where a source did not judge."""
    tests = (~np.isnan(p)).sum(axis=0)
    least = np.where(np.isnan(p), 1.0, p).min(axis=0)
    return np.asarray(np.where(tests > 0, np.minimum(1.0, tests * least), np.nan))


def _scored_part(
    name: str, n: int, found: Mapping[str, _Judged], p: float, q: float, level: float, least_ratio: float
) -> Scored:
    evidence = tuple(
        Evidence(source, float(one.failures[n]), float(one.expected[n]), float(one.p[n]))
        for source, one in found.items()
        if not np.isnan(one.p[n])
    )
    return _scored(name, evidence, p, q, level, least_ratio)


def _scored(
    name: str,
    evidence: tuple[Evidence, ...],
    p: float,
    q: float,
    level: float,
    least_ratio: float,
    members: int = 0,
    alike: tuple[str, ...] = (),
) -> Scored:
    leading = min(evidence, key=lambda one: (one.p_value, one.source))
    expected = max(leading.expected, 1e-9)
    low, high = ratio_interval(leading.failures, expected)
    ratio = leading.failures / expected
    lemon = q <= level and ratio >= least_ratio and leading.failures >= LEAST_OWN_FAILURES
    return Scored(name, ratio, low, high, p, q, lemon, evidence, members, alike)


def _groups(
    names: Sequence[str],
    found: Mapping[str, _Judged],
    labels: Mapping[str, Sequence[str]],
    level: float,
    least_ratio: float,
) -> tuple[Scored, ...]:
    """Batches and firmware, the lowest p-value first; labels with the same members are one."""
    places = {name: n for n, name in enumerate(names)}
    by_members: dict[tuple[int, ...], list[str]] = {}
    for label, members in labels.items():
        rows = tuple(sorted(places[name] for name in members if name in places))
        if LEAST_MEMBERS <= len(rows) <= LARGEST_SHARE * len(names):
            by_members.setdefault(rows, []).append(label)
    results: list[tuple[tuple[str, ...], tuple[Evidence, ...], int, float]] = []
    for rows, same in by_members.items():
        pieces = [_of_group(source, one, rows) for source, one in found.items()]
        evidence = tuple(one for one in pieces if one is not None)
        if evidence:
            least = min(1.0, len(evidence) * min(one.p_value for one in evidence))
            results.append((tuple(sorted(same)), evidence, len(rows), least))
    if not results:
        return ()
    q = q_values(np.asarray([p for *_, p in results]), len(results))
    scored = [
        _scored(same[0], evidence, p, float(q[n]), level, least_ratio, members, same[1:])
        for n, (same, evidence, members, p) in enumerate(results)
    ]
    return tuple(sorted(scored, key=lambda one: (one.p_value, one.name)))


def _of_group(source: str, one: _Judged, rows: Sequence[int]) -> Evidence | None:
    """A batch or firmware in one source; None with too few judged members.

    Counts of single parts: the sum of the members' normal scores (Stouffer 1949), each capped, so that one lemon does
    not make a bad batch. Shared attempts: those left after the lemons were taken out, or more members among the
    lemons than by chance (hypergeometric), whichever is stronger.
    """
    from scipy.special import ndtr

    chosen = np.asarray([n for n in rows if not np.isnan(one.p[n])], dtype=np.int64)
    if len(chosen) < LEAST_MEMBERS:
        return None
    failures, expected = float(one.failures[chosen].sum()), float(one.expected[chosen].sum())
    if one.normal is not None:
        total = float(np.clip(one.normal[chosen], -CAPPED, CAPPED).sum())
        return Evidence(source, failures, expected, float(ndtr(-total / np.sqrt(len(chosen)))))
    assert one.shared is not None
    left, usual, variance = one.shared.left.of_group(chosen)
    among = sum(n in one.shared.taken_out for n in chosen.tolist())
    judged = int((~np.isnan(one.p)).sum())
    p = _more_than_chance(among, len(one.shared.taken_out), len(chosen), judged)
    if variance > 0:
        spread = one.spread * usual**2 / len(chosen)
        p = min(p, float(ndtr(-(left - usual) / np.sqrt(variance + spread))))
    return Evidence(source, failures, expected, min(1.0, 2 * p))


def _more_than_chance(among: int, lemons: int, members: int, parts: int) -> float:
    """P(so many of the `lemons` or more are members) if the lemons lie anywhere."""
    most = min(lemons, members)
    ways = sum(math.comb(members, k) * math.comb(parts - members, lemons - k) for k in range(among, most + 1))
    return ways / math.comb(parts, lemons)
