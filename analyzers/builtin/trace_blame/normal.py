"""Norm of a place, and the evidence of the judged window for a change.

*Times.* The mean logarithm of a place varies from window to window without any fault (another mix of
requests, another pod, more load), so a change is measured against that variation and not only against the
noise of a mean: a random-effects model. With `d` the change of the mean, `v` its variance (between windows,
of the normal mean, of the window's mean) and a change under a fault taken as N(0, FAULT_SPREAD^2), the Bayes
factor for a fault is

    sqrt(v / (v + w)) exp(d^2 w / (2 v (v + w))),   w = FAULT_SPREAD^2.

Normal means of rare operations are drawn towards those of all places of their kind (normal-normal empirical
Bayes; Efron and Morris 1975). A place that the history never saw has no normal, and never speaks for a fault.

The variation between windows is learnt from all places together and from each place (`Drift`); few windows do not
show what is rare, so that a part of it falls only with their number. What load adds is predicted and taken off
(`load`). A change that the place showed in k of n windows of the history, at half its size or more, says at most
log((n + 1) / k).

*Harmless surprises.* Now and then a place changes far beyond its noise without any fault: other data, another kind of
request, a cold cache. With a share e of such surprises the density of a normal window is not below e times that of a
fault, so no place speaks for a fault with more than log(1/e) (an e-contamination model; Huber 1964). The share is
learnt: of the places and windows of the history, how many surprise the other windows (Laplace's rule of succession).

*Shapes.* Outcomes of an operation are compared twice: how many are new, beta-binomial, where normally new outcomes
have the share that the history's single sightings promise (Good 1953); and the mix of the known ones,
Dirichlet-multinomial, where normally the concentration is the history's, bounded so that another mix of requests is
no fault. Under a fault any shares are as likely.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import betaln, gammaln

from analyzers.builtin.trace_blame.load import Slowing, slowing, slowing_of
from analyzers.builtin.trace_blame.places import Shapes, Times, grouped, totals
from analyzers.builtin.trace_blame.spans import Flags, Floats, Ints

FAULT_SPREAD = 2.0
"""Standard deviation of the change of a mean logarithm under a fault: a factor of seven is ordinary."""

DRIFT, DRIFT_WINDOWS = 0.5, 3.5
"""Standard deviation between windows, in logarithms, that is reckoned with whatever the history shows: a factor of 1.6
is ordinary between two days. From `DRIFT_WINDOWS` windows on it falls with the square of their number, since what is
rare is not seen in a few."""

DRIFT_TRUST = 3.0
"""Number of windows that the drift of all places weighs against a place's own."""

MOST_TRUST = 300.0
"""Largest weight of the history's share of new outcomes, in spans."""

MIX_TRUST = 15.0
"""Largest weight of the history's mix of outcomes, in spans: what is asked for changes without any fault."""

LEAST_SURPRISE = 0.001
"""Least share of spans whose outcome is new in a fleet without fault."""

TELLING = 2.0
"""Most that one span can say, in nats: a single request may be slow or odd for reasons of its own."""

ENOUGH = 60.0
"""Spans of an operation that a history must hold for its outcomes to be known; fewer count in proportion."""

MOST_COMMON = 1.0
"""Largest shift of all places that passes for load: a factor of 2.7."""

SURPRISES = 0.5
TIMES_COMPARED, OUTCOMES_COMPARED = 20_000.0, 5000.0
"""Half a surprise in so many places and windows is believed before any are counted."""

MOST_MIX = 4.0
"""Most that another mix of known outcomes says, in nats, if errors became no more frequent: it is often what was asked
for."""

FEWEST_COMPARED = 3
"""Windows of the history from which on their surprises can be counted."""

FAR_OFF = 3.0
"""Standard deviations from which on a mean of the history counts as a surprise."""

RECURRING = 2.0
"""Standard deviations from which on a window of the history counts as one in which the same happened before."""

FEWEST_SERVICES = 3
"""Services needed to tell what is common."""

SURPRISE_TRUST = 10.0
"""Weight of the fleet's share of new outcomes against an operation's own, in spans."""


@dataclass(frozen=True, slots=True, eq=False)
class Normal:
    """By place: mean logarithm, its variance, variance of a single span, variance between windows, and
    plain microseconds; `spans` is how many the history holds and in how many `windows`. `most` is the most that one
    place can say, in nats; `surprising` the share of places and windows of the history that surprise the others, and
    `surprises` how far each did (see `_surprises`). `common` is the variance between windows of all places, `used` what
    is known of shares of use (see `load.Slowing`).
    """

    mean: Floats
    uncertain: Floats
    within: Floats
    drift: Floats
    us: Floats
    spans: Floats
    most: float
    surprising: float
    resolution: Floats
    common: Drift
    used: Floats | None
    surprises: Floats
    windows: Ints


def normal_times(
    times: Times,
    eras: int,
    load: Floats | None = None,
    known: Normal | None = None,
    by_place: bool = False,
) -> Normal:
    """Norm of each place; with `load` (see `load.loads`) under the load of the judged window, to which all places of
    a service answer alike, or each in its own way (`by_place`) as its caller is asked.

    `known` is what a longer history shows: how much places vary, and what load does to services (or places) of the same
    numbers.
    """
    past = times.era < eras - 1
    count = _by(times.place, times.count, past, times.places)
    log = _by(times.place, times.log, past, times.places)
    us = _by(times.place, times.us, past, times.places)
    within = _within(times, past)
    means = _means(times, past)
    plain = log / np.maximum(count, 1)
    shift, wider, common = np.zeros(times.places), np.zeros(times.places), known.common if known else None
    location, drift, found = _over_eras(means, within, plain, common)
    used: Floats | None = None
    lighter = means
    if load is not None and by_place:
        load, key = load[times.client], np.arange(times.places)
    else:
        key = times.server
    for _ in range(0 if load is None else 1 if known else 2):
        assert load is not None
        if known is None or known.used is None:
            slower = _slowing(load, key, means, within, found)
        else:
            slower = slowing_of(load, known.used)
        used, shift, wider = slower.used, slower.shift[key], slower.variance[key]
        lighter = replace(means, mean=means.mean - slower.past[key[means.place], means.era])
        location, drift, found = _over_eras(lighter, within, plain, common)
    mean, uncertain = _drawn_together(location, within, count)
    plain_us = np.where(count > 0, us / np.maximum(count, 1), np.nan)
    surprises, compared = _surprising_means(lighter, location, within, drift)
    return Normal(
        mean + shift,
        uncertain + drift / np.maximum(1, means.windows),
        within,
        drift + wider,
        plain_us,
        count,
        strongest_evidence(surprises, compared, TIMES_COMPARED),
        surprises / max(1.0, compared),
        times.resolution,
        found,
        used,
        _surprises(lighter, location, within, drift),
        means.windows,
    )


def _slowing(load: Floats, key: Ints, means: _Means, within: Floats, drift: Drift) -> Slowing:
    """Effect of load, by the changes of each place from one window to the next that it has."""
    noise = drift.shown + within[means.place] / np.maximum(means.count, 1)
    same = np.flatnonzero(means.place[1:] == means.place[:-1])
    service = key[means.place[same]]
    change, variance = means.mean[same + 1] - means.mean[same], noise[same + 1] + noise[same]
    return slowing(load, service, (means.era[same], means.era[same + 1]), change, variance)


@dataclass(frozen=True, slots=True, eq=False)
class _Means:
    """Mean logarithms of the history, one row a place and window."""

    place: Ints
    era: Ints
    count: Floats
    mean: Floats
    windows: Ints
    """Number of windows of the history that each place has, of shape (places,)."""


def _means(times: Times, past: Flags) -> _Means:
    pair, heads = grouped(times.place[past], times.era[past])
    count = totals(pair, times.count[past], len(heads))
    mean = totals(pair, times.log[past], len(heads)) / np.maximum(count, 1)
    place, era = times.place[past][heads], times.era[past][heads]
    return _Means(place, era, count, mean, np.bincount(place, minlength=times.places))


def _surprises(means: _Means, location: Floats, within: Floats, drift: Floats) -> Floats:
    """By place how far each window of the history was above its location where that was more than noise, largest first,
    else 0; of shape (places, most windows of a place).
    """
    place, above = means.place, means.mean - location[means.place]
    noise = np.sqrt(drift[place] + within[place] / np.maximum(means.count, 1))
    above = np.where(above > RECURRING * noise, above, 0.0)
    order = np.lexsort((-above, place))
    begin = np.searchsorted(place[order], np.arange(len(location)), "left")
    table = np.zeros((len(location), int(means.windows.max(initial=0))))
    table[place[order], np.arange(len(order)) - begin[place[order]]] = above[order]
    return table


def _recurring(normal: Normal, place: Ints, shift: Floats) -> Floats:
    """The most that a change says, in nats, where windows of the history had one of half its size or more at the same
    place: what happens in k of n windows without a fault has at least the density k / (n + 1) there.
    """
    often = (normal.surprises[place] > np.maximum(0.0, shift[:, np.newaxis]) / 2).sum(axis=1)
    return np.where(often > 0, np.log((normal.windows[place] + 1) / np.maximum(often, 1)), np.inf)


def strongest_evidence(surprises: float, compared: float, believed: float) -> float:
    """The most that one place may say, in nats, after so many surprises in so many places and windows of the history;
    `believed` are places and windows with half a surprise that are taken for granted.
    """
    return float(np.log((compared + believed) / (surprises + SURPRISES)))


def _surprising_means(means: _Means, location: Floats, within: Floats, drift: Floats) -> tuple[float, float]:
    """In how many places and windows of the history a mean is far above its location, and how many there are."""
    place = means.place
    compared = means.windows[place] >= FEWEST_COMPARED
    far = FAR_OFF * np.sqrt(drift[place] + within[place] / np.maximum(means.count, 1))
    return float((compared & (means.mean - location[place] > far)).sum()), float(compared.sum())


def _by(place: Ints, values: Floats, chosen: Flags, places: int) -> Floats:
    return totals(place[chosen], values[chosen], places)


def _within(times: Times, past: Flags) -> Floats:
    """Variance of a single span inside its window, drawn towards that of all places with the weight of five
    spans.
    """
    pair, heads = grouped(times.place[past], times.era[past])
    groups, place = len(heads), times.place[past][heads]
    count = totals(pair, times.count[past], groups)
    log = totals(pair, times.log[past], groups)
    spread = np.maximum(0.0, totals(pair, times.log2[past], groups) - log * log / np.maximum(count, 1))
    by_place = totals(place, spread, times.places)
    freedom = totals(place, np.maximum(0.0, count - 1), times.places)
    overall = max(0.01, float(by_place.sum() / max(1.0, freedom.sum())))
    return np.asarray((by_place + 5 * overall) / (freedom + 5))


def _over_eras(
    means: _Means, within: Floats, plain: Floats, common: Drift | None
) -> tuple[Floats, Floats, Drift]:
    """The normal location of each place and the variance between windows.

    From three windows on the location is their median, so that a fault that is still in the history does not
    become normal while it holds less than half of it.
    """
    place, mean, places = means.place, means.mean, len(plain)
    location, typical = plain.copy(), np.zeros(places)
    order = np.lexsort((mean, place))
    begin = np.searchsorted(place[order], np.arange(places), "left")
    end = np.searchsorted(place[order], np.arange(places), "right")
    shown = np.flatnonzero(means.windows >= FEWEST_COMPARED)
    for number in shown.tolist():
        own = order[begin[number] : end[number]]
        location[number] = float(np.median(mean[own]))
        apart = (mean[own] - location[number]) ** 2 - within[number] / means.count[own]
        typical[number] = float(np.median(np.maximum(apart, 0.0))) / 0.455  # median of chi-squared, 1 degree
    if common is None:
        common = _common_drift(typical[shown], means.windows[shown])
    own_weight = np.where(means.windows >= FEWEST_COMPARED, means.windows, 0)
    drift = (DRIFT_TRUST * common.shown + own_weight * typical) / (DRIFT_TRUST + own_weight)
    return location, common.unseen + drift, common


@dataclass(frozen=True, slots=True)
class Drift:
    """Variance between windows: what all places together show, and what too few windows do not show."""

    shown: float
    unseen: float


def _common_drift(typical: Floats, windows: Ints) -> Drift:
    """`shown` is the mean of what the places show, without the tenth that shows most."""
    if not len(typical):
        return Drift(0.0, DRIFT**2)
    shown = float(np.sort(typical)[: max(1, int(np.ceil(0.9 * len(typical))))].mean())
    return Drift(shown, DRIFT**2 * min(1.0, (DRIFT_WINDOWS / float(np.median(windows))) ** 4))


def _drawn_together(location: Floats, within: Floats, count: Floats) -> tuple[Floats, Floats]:
    """Normal means with those of rare places drawn towards the middle of all, and their variances."""
    seen = count > 0
    if not seen.any():
        return np.zeros(len(count)), np.full(len(count), np.inf)
    noise = within[seen] / count[seen]
    middle = float(np.median(location[seen]))
    between = max(0.25, float(np.mean((location[seen] - middle) ** 2 - noise)))
    noise_of = np.where(seen, within / np.maximum(count, 1), np.inf)
    weight = between / (between + noise_of)
    mean = np.where(seen, weight * location + (1 - weight) * middle, middle)
    return mean, np.where(seen, weight * np.where(seen, noise_of, 0.0), between)


@dataclass(frozen=True, slots=True, eq=False)
class Change:
    """By group of cells, all at one place (`place`): the number of spans, the change of the mean logarithm,
    the log Bayes factor for a fault, and mean microseconds.
    """

    place: Ints
    count: Floats
    shift: Floats
    support: Floats
    us: Floats


def changes(
    times: Times, normal: Normal, rows: Ints, common: float, instance: Ints | None = None
) -> tuple[Change, Ints]:
    """The changes in the chosen cells, by place; or by place and `instance` (of the shape of the cells).

    `common` is what all places shifted by (see `common_shift`). The second value is a cell of each group.
    """
    keys = (times.place[rows],) if instance is None else (times.place[rows], instance[rows])
    group, heads = grouped(*keys)
    groups = len(heads)
    place = times.place[rows][heads]
    count = totals(group, times.count[rows], groups)
    some = np.maximum(count, 1)
    mean = totals(group, times.log[rows], groups) / some
    square = totals(group, times.log2[rows], groups) / some
    own = np.maximum(normal.within[place], square - mean * mean)
    shift = mean - normal.mean[place] - common
    variance = normal.drift[place] + normal.uncertain[place] + own / some
    telling = TELLING * np.minimum(count, normal.spans[place])
    support = np.minimum(log_bayes(shift, variance), np.minimum(telling, normal.most))
    support = np.minimum(support, _recurring(normal, place, shift))
    support = np.where(shift > 0, support, np.minimum(0.0, support))
    us = totals(group, times.us[rows], groups) / some
    return Change(place, count, shift, support, us), rows[heads]


def common_shift(times: Times, normal: Normal, rows: Ints) -> float:
    """Shift of the middle service, at its own middle place, if that is slower: under more load everything takes
    longer. Services are taken as those that answer and as those that call, and the lesser shift counts, so that one
    service that is slow to all others is not common to them.
    """
    change, _ = changes(times, normal, rows, 0.0)
    known = normal.spans[change.place] > 0
    shift = change.shift[known]
    found = []
    for side in (times.server, times.client):
        services = side[change.place][known]
        middles = [float(np.median(shift[services == one])) for one in np.unique(services).tolist()]
        found.append(float(np.median(middles)) if len(middles) >= FEWEST_SERVICES else 0.0)
    return min(MOST_COMMON, max(0.0, min(found)))


def log_bayes(shift: Floats, variance: Floats) -> Floats:
    wide = variance + FAULT_SPREAD**2
    known = np.isfinite(variance)
    safe = np.where(known, variance, 1.0)
    support = 0.5 * np.log(safe / np.where(known, wide, 1.0)) + shift**2 * FAULT_SPREAD**2 / (
        2 * safe * np.where(known, wide, 1.0)
    )
    return np.where(known, support, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class Habits:
    """Habits of spans in the history: by place their number and the share that new outcomes may take; the largest
    evidence of one place, in nats; and a table of the known outcomes (`key` ascending, of place and outcome) with
    their share at the place.
    """

    spans: Floats
    surprise: Floats
    most: float
    surprising: float
    width: int
    key: Ints
    place: Ints
    share: Floats


def habits(shapes: Shapes, eras: int) -> Habits:
    past = shapes.era < eras - 1
    width = int(shapes.outcome.max(initial=0)) + 1
    key, back = np.unique(shapes.place[past] * width + shapes.outcome[past], return_inverse=True)
    count = totals(back, shapes.count[past], len(key))
    place = key // width
    total = _by(shapes.place, shapes.count, past, shapes.places)
    single = np.bincount(place[count == 1], minlength=shapes.places).astype(np.float64)
    fleet = max(LEAST_SURPRISE, float(single.sum() / max(1.0, total.sum())))
    surprise = (single + 0.5 + SURPRISE_TRUST * fleet) / (total + SURPRISE_TRUST + 1)
    surprises, compared = _surprising_outcomes(shapes, past)
    most = strongest_evidence(surprises, compared, OUTCOMES_COMPARED)
    share = count / np.maximum(1, total[place])
    return Habits(total, surprise, most, surprises / max(1.0, compared), width, key, place, share)


def _surprising_outcomes(shapes: Shapes, past: Flags) -> tuple[float, float]:
    """In how many places and windows of the history an outcome that no other window had takes a fifth or more, and how
    many there are.
    """
    width = int(shapes.outcome.max(initial=0)) + 1
    kind, era = shapes.place[past] * width + shapes.outcome[past], shapes.era[past]
    pair, heads = grouped(kind, era)
    count = totals(pair, shapes.count[past], len(heads))
    _, at, windows = np.unique(kind[heads], return_inverse=True, return_counts=True)
    alone = windows[at] == 1
    place, heads_of = grouped(kind[heads] // width, era[heads])
    spans = totals(place, count, len(heads_of))
    new = totals(place[alone], count[alone], len(heads_of))
    where = (kind[heads] // width)[heads_of]
    seen = np.bincount(where, minlength=shapes.places)[where]
    compared = (seen >= FEWEST_COMPARED) & (spans >= FEWEST_COMPARED)
    return float((compared & (new >= 0.2 * spans)).sum()), float(compared.sum())


@dataclass(frozen=True, slots=True, eq=False)
class Odd:
    """By group of cells, all at one place: the number of spans, how many had an outcome that the history
    never saw, how many of those ended in an error (`failed`), the log Bayes factors of a fault from those (`new`) and
    from the mix of the known ones (`mix`), the share of spans by which outcomes gained over their normal share, and
    whether known outcomes end in errors of its own more often than usual (`erring`).
    """

    place: Ints
    count: Floats
    unseen: Floats
    failed: Floats
    new: Floats
    mix: Floats
    gained: Floats
    erring: Flags


def oddities(shapes: Shapes, usual: Habits, rows: Ints, by_instance: bool = False) -> tuple[Odd, Ints]:
    """Oddities of spans of the chosen cells, by place or by place and instance, and a cell of each group.

    `mix` is 0 by instance, and where spans are callers' sides of calls: what they call is what was asked.
    """
    keys = (shapes.place[rows], shapes.instance[rows]) if by_instance else (shapes.place[rows],)
    group, heads = grouped(*keys)
    groups, place = len(heads), shapes.place[rows][heads]
    wanted = shapes.place[rows] * usual.width + shapes.outcome[rows]
    at = np.minimum(np.searchsorted(usual.key, wanted), max(0, len(usual.key) - 1))
    known = usual.key[at] == wanted if len(usual.key) else np.zeros(len(rows), dtype=np.bool_)
    spans = shapes.count[rows]
    count = totals(group, spans, groups)
    unseen = totals(group[~known], spans[~known], groups)
    errors = np.array([error for error, _ in shapes.outcomes], dtype=np.bool_)[shapes.outcome[rows]]
    failed = totals(group[~known & errors], spans[~known & errors], groups)
    past = usual.spans[place]
    telling = TELLING * np.minimum(1.0, past / ENOUGH)
    new = np.where(past > 0, novelty(unseen, count, past, usual.surprise[place] + shapes.torn), 0.0)
    mix, gained = np.zeros(groups), unseen.astype(np.float64)
    erring = np.zeros(groups, dtype=np.bool_)
    if not by_instance:
        seen = totals(at[known], spans[known], len(usual.key))
        whole = _mixture(seen, usual, shapes.places)[place]
        mix = np.where((past > 0) & ~shapes.asks[place], np.minimum(whole, telling * count), 0.0)
        fewer, more_errors = _lessened(shapes, usual, seen)
        mix = np.where((fewer | more_errors)[place], mix, np.minimum(mix, 0.0))
        erring = more_errors[place]
        met = totals(usual.place, seen, shapes.places)[usual.place]
        over = np.maximum(0.0, seen - usual.share * met)
        gained = gained + totals(usual.place, over, shapes.places)[place]
    return Odd(
        place,
        count,
        unseen,
        failed,
        np.minimum(new, np.minimum(telling * unseen, usual.most)),
        np.minimum(mix, np.where(erring, usual.most, MOST_MIX)),
        gained / np.maximum(count, 1),
        erring,
    ), rows[heads]


def _lessened(shapes: Shapes, usual: Habits, seen: Floats) -> tuple[Flags, Flags]:
    """By place, whether the known outcomes call less than usual, and whether they end in errors more often: what calls
    more does more work, as after a cold start of a cache.
    """
    of = usual.key % usual.width
    calls = np.array([len(called) for _, called in shapes.outcomes], dtype=np.float64)[of]
    errors = np.array([error for error, _ in shapes.outcomes], dtype=np.float64)[of]
    change = seen / np.maximum(1.0, totals(usual.place, seen, shapes.places)[usual.place]) - usual.share
    fewer = totals(usual.place, change * calls, shapes.places) < 0
    return np.asarray(fewer), np.asarray(totals(usual.place, change * errors, shapes.places) > 0)


def novelty(unseen: Floats, count: Floats, past: Floats, surprise: Floats) -> Floats:
    """Beta-binomial against beta-binomial: normally the history's surprise, under a fault any share."""
    trust, surprise = np.minimum(MOST_TRUST, past + 1), np.clip(surprise, 1e-6, 0.5)
    low, high = trust * surprise, trust * (1 - surprise)
    fault = betaln(unseen + 0.5, count - unseen + 0.5) - betaln(0.5, 0.5)
    support = fault - betaln(unseen + low, count - unseen + high) + betaln(low, high)
    return np.asarray(np.where(unseen > surprise * count, support, np.minimum(support, 0.0)))


def _mixture(seen: Floats, usual: Habits, places: int) -> Floats:
    """Dirichlet-multinomial against the same: normally the history's shares, under a fault any shares."""
    trust = np.minimum(MIX_TRUST, usual.spans)[usual.place]
    weight = np.maximum(trust * usual.share, 1e-9)
    inside = gammaln(seen + 1) - gammaln(seen + weight) + gammaln(weight)
    total = totals(usual.place, seen, places)
    whole = totals(usual.place, weight, places)
    kinds = np.bincount(usual.place, minlength=places).astype(np.float64)
    safe, some = np.where(kinds > 0, whole, 1.0), np.maximum(kinds, 1)
    outside = gammaln(some) - gammaln(some + total) + gammaln(safe + total) - gammaln(safe)
    return np.asarray(totals(usual.place, inside, places) + outside)
