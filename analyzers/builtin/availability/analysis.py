"""Availability: A = sum of time up / (sum of time up + sum of time down), and the components below target.

A component is below its target by more than chance (`below`) where so much downtime is improbable for a component
whose true availability is the target and whose outages are like those of the others, or where outages on so many days
are. An outage or two says little: with three nines a component may be down for 43 minutes a month, and one outage of
an hour is below target without being a sign of anything. The sum alone hides what fails again and again: one long
outage by chance weighs as much as twenty short ones, which are none. Assumptions are checked on each window.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy  # scipy.special takes a third of a second to load, and does when it is first used
from numpy.typing import NDArray

from analyzers.builtin.availability import evidence
from analyzers.builtin.availability.ledger import Found, Ledger, groups_of, ledger_of
from analyzers.builtin.paths import texts
from analyzers.builtin.stats.intervals import MINUTE, microseconds, moment
from analyzers.builtin.stats.nines import (
    UNSEEN,
    availability_of,
    downtime_per_year,
    lost_interval,
    show_availability,
    show_days,
    show_minutes,
    uptime_share,
)
from analyzers.builtin.stats.probability import q_values
from analyzers.builtin.text import percent, so_many
from analyzers.contract import (
    Assumption,
    Estimate,
    Params,
    Sums,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
)
from ingest.telemetry.kinds.declare import is_component

LEVEL, SURE_LEVEL = 0.05, 0.001
"""Share of false ones among the components that are said to be below target, and that which is enough to act."""


def analyze(window: Window, params: Params) -> Verdict:
    bounds = microseconds(window.start), microseconds(window.end)
    ledger = ledger_of(window.sums, *bounds, float(params["open_hours"]))
    observed, lost = float(ledger.observed.sum()), float(ledger.lost.sum())
    if observed <= 0:
        return inconclusive("No component was observed in this window.", {"components": 0})
    found = _found(ledger, _labels(window.sums.get("fleet")), params)
    whole = uptime_share(observed - lost, lost)
    measures: dict[str, Any] = {
        "availability": whole,
        "target": found.target,
        "components": len(ledger.components),
        "below_target": found.below,
        "outages": len(ledger.spells),
        "minutes_observed": observed,
        "minutes_lost": lost,
        "minutes_planned": float(ledger.planned.sum()),
        "minutes_unknown": float(ledger.unknown.sum()),
        "share_observed": observed / (observed + float(ledger.unknown.sum())),
        "unended_outages": ledger.unended,
        "minutes_by_cause": {
            cause: float(minutes)
            for cause, minutes in zip(ledger.causes, ledger.by_cause.sum(axis=0), strict=True)
            if minutes > 0
        },
        "minutes_per_year": downtime_per_year(whole),
        "shown": show_availability(whole),
    }
    shown = evidence.pieces(window, found)
    assumptions = checked(ledger)
    sampled = all(one.holds for one in assumptions if one.name == "sampling")
    together = shared(ledger)
    suspects = tuple(_suspect(found, row, sampled, together) for row in found.named)
    if suspects:
        return Verdict("named", suspects, None, measures, shown, assumptions)
    return quiet(measures, shown, assumptions)


def _labels(fleet: Sums | None) -> dict[str, dict[str, str]]:
    if fleet is None:
        return {}
    pairs = zip(texts(fleet, "component"), texts(fleet, "labels"), strict=True)
    return {
        name: {key: str(value) for key, value in json.loads(text or "{}").items()} for name, text in pairs
    }


def _found(ledger: Ledger, labels: dict[str, dict[str, str]], params: Params) -> Found:
    nines = float(params["target_nines"])
    target = availability_of(nines)
    allowed = (1 - target) * (ledger.observed + ledger.unknown)
    p = np.ones(len(ledger.components))
    below = np.flatnonzero((ledger.lost > allowed) & (ledger.lost > 0))
    judged = below[allowed[below] > 0]
    spells = ledger.spells
    lengths = lengths_of_others(spells.minutes, spells.owner, ledger.cause, len(ledger.causes), judged)
    lost = chances(ledger.lost[judged], allowed[judged], lengths)
    p[judged] = together(lost, days_by_chance(spells.start, spells.minutes, spells.owner, allowed, judged))
    q = q_values(p, len(p))
    guilty = [row for row in below.tolist() if q[row] < LEVEL and is_component(ledger.components[row])]
    guilty.sort(key=lambda row: (-ledger.lost[row], ledger.components[row]))
    return Found(
        ledger,
        groups_of(ledger, labels),
        target,
        nines,
        p,
        q,
        tuple(guilty[: int(params["most"])]),
        len(below),
    )


def _suspect(found: Found, row: int, sampled: bool, together: NDArray[np.bool_]) -> Suspect:
    """One window is enough to act on only if enough is `sampled` and most outages are not `together` with others'."""
    ledger = found.ledger
    mine = np.flatnonzero(ledger.spells.owner == row)
    own = sampled and 2 * int(together[mine].sum()) <= len(mine)
    observed = float(ledger.observed[row])
    lost = float(ledger.lost[row]) / observed
    minutes = [float(one) for one in ledger.spells.minutes[mine]]
    low, _ = lost_interval(minutes, observed + float(ledger.unknown[row]))
    _, high = lost_interval(minutes, observed, unseen=UNSEEN)
    return Suspect(
        component=ledger.components[row],
        score=None,
        summary=_sentence(found, row),
        p_value=float(found.p[row]),
        q_value=float(found.q[row]),
        estimate=Estimate(lost, min(low, lost), max(high or 0.0, lost), "was down {} of the time"),
        sure=own and float(found.q[row]) < SURE_LEVEL,
        first_failure=moment(int(ledger.spells.start[mine].min())),
        last_failure=moment(int(ledger.spells.end[mine].max())),
        phrase=_summary(found, row),
    )


def _summary(found: Found, row: int) -> str:
    """What is wrong, as the end of a title that begins with the component."""
    ledger = found.ledger
    period = float(ledger.observed[row]) + float(ledger.unknown[row])
    lost, allowed = show_minutes(float(ledger.lost[row])), show_minutes((1 - found.target) * period)
    return f"was down for {lost} in {show_days(period)}, where {allowed} are allowed"


def _sentence(found: Found, row: int) -> str:
    ledger = found.ledger
    times = int(ledger.outages[row])
    main = ledger.causes[int(np.argmax(ledger.by_cause[row]))]
    observed, unknown = float(ledger.observed[row]), float(ledger.unknown[row])
    allowed = (1 - found.target) * (observed + unknown)
    untold = f" Of {show_minutes(unknown)} nothing is known; they count as up." if unknown >= 1 else ""
    return (
        f"{ledger.components[row]} was up {show_availability(float(ledger.availability[row]))} of the time, below "
        f"its target of {show_availability(found.target)}: down {'once' if times == 1 else f'{times} times'} for "
        f"{show_minutes(float(ledger.lost[row]))} where {show_minutes(allowed)} are allowed, mostly {main}.{untold}"
    )


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_APART = 20.0
"""Causes are told apart up to means that differ by this factor; shorter ones are taken as so long."""

_MANY = 500.0
"""Expected outages above which their sum is as good as normal."""

_FAR = 6.5
"""Where the sum is so far out, in the scale of `_reach`, the chance is below 1e-17 and no longer computed."""

_AT_ONCE = 256

_DAY = 86_400_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Lengths:
    """What outages are like: by cause the share of the downtime and the mean minutes; of shape (rows, causes)."""

    share: Floats
    mean: Floats


def lengths_of_others(minutes: Floats, owner: Ints, cause: Ints, causes: int, rows: Ints) -> Lengths:
    """For each owner in `rows` what the outages of all others are like; its own where no other had one.

    Lengths within a cause are taken as exponential. Where they scatter more than that (some last for days), the mean
    that longer ones promise is taken, `E[x^2] / 2 E[x]`: it is the same for an exponential, and more if the tail is
    heavier.
    """
    sums = []
    for power in (0, 1, 2):
        every = np.bincount(cause, minutes**power, minlength=causes)
        own = np.zeros((len(rows), causes))
        place = np.full(int(owner.max(initial=-1)) + 1, -1, dtype=np.int64)
        place[rows[rows < len(place)]] = np.flatnonzero(rows < len(place))
        mine = place[owner] >= 0
        np.add.at(own, (place[owner[mine]], cause[mine]), minutes[mine] ** power)
        rest = np.maximum(every - own, 0.0)
        alone = rest.sum(axis=1) <= 1e-9
        rest[alone] = every
        sums.append(rest)
    count, total, square = sums
    some = (count > 0.5) & (total > 0)
    mean = np.where(some, total / np.maximum(count, 1), 0.0)
    promised = np.where(some, square / np.where(some, 2 * total, 1.0), 0.0)
    mean = np.maximum(mean, promised)
    longest = mean.max(axis=1, keepdims=True)
    share = np.where(some, total, 0.0) / np.maximum(total.sum(axis=1, keepdims=True), 1e-300)
    return Lengths(share, np.maximum(mean, longest / MOST_APART))


def chances(lost: Floats, allowed: Floats, lengths: Lengths) -> Floats:
    """The probability of losing at least `lost` where `allowed` is expected; all above 0, of shape (rows,).

    Outages of each cause come as a Poisson process, as many as their share of `allowed` needs, and their lengths are
    exponential: a compound Poisson sum. An exponential of mean m is a geometric number of exponentials of the
    shortest mean, so that the sum is a random number J of alike stages, whose distribution follows by recursion, and
    the chance is `sum_k Poisson(k; lost / shortest) P(J > k)`. All terms are positive: far tails are exact, too.
    """
    found = np.ones(len(lost))
    expected = (allowed[:, None] * lengths.share / lengths.mean).sum(axis=1)
    many = expected > _MANY
    variance = 2 * (allowed[:, None] * lengths.share * lengths.mean).sum(axis=1)
    found[many] = scipy.special.ndtr((allowed[many] - lost[many]) / np.sqrt(variance[many]))
    few = np.flatnonzero(~many)
    for first in range(0, len(few), _AT_ONCE):
        rows = few[first : first + _AT_ONCE]
        found[rows] = _tails(lost[rows], allowed[rows], Lengths(lengths.share[rows], lengths.mean[rows]))
    return found


def together(lost: Floats, days: Floats) -> Floats:
    """One probability out of two that were looked at: the smaller, doubled."""
    return np.asarray(np.minimum(1.0, 2 * np.minimum(lost, days)))


def days_by_chance(start: Ints, minutes: Floats, owner: Ints, allowed: Floats, rows: Ints) -> Floats:
    """The probability that outages begin on at least so many days where `allowed` minutes are expected; (rows,).

    Days and not outages are counted, because what flaps for an hour is one thing that happened. As many outages are
    taken as usual as `allowed` minutes hold of the others' mean length, or of the component's own if that is shorter:
    who goes out often for a moment may.
    """
    owners = len(allowed)
    day = start // _DAY - int(start.min(initial=0)) // _DAY
    apart = int(day.max(initial=0)) + 1
    days = np.bincount(np.unique(owner * apart + day) // apart, minlength=owners)
    count, total = np.bincount(owner, minlength=owners), np.bincount(owner, minutes, minlength=owners)
    others = (total.sum() - total[rows]) / np.maximum(1, count.sum() - count[rows])
    own = total[rows] / np.maximum(1, count[rows])
    usual = np.where(others > 0, np.minimum(own, others), own)
    return np.asarray(scipy.special.gammainc(np.maximum(1, days[rows]), allowed[rows] / usual))


def _reach(allowed: Floats, longest: Floats) -> Floats:
    """Minutes beyond which the chance is below 1e-17 even if all outages were of the longest sort."""
    return np.asarray((np.sqrt(allowed / longest) + _FAR) ** 2 * longest)


def _tails(lost: Floats, allowed: Floats, lengths: Lengths) -> Floats:
    shortest = np.where(lengths.share > 0, lengths.mean, np.inf).min(axis=1)
    stages = np.minimum(lost, _reach(allowed, lengths.mean.max(axis=1))) / shortest
    most = int(np.max(stages + 12 * np.sqrt(stages))) + 40
    rate = allowed[:, None] * lengths.share / lengths.mean
    go_on = np.where(lengths.share > 0, 1 - shortest[:, None] / lengths.mean, 0.0)
    at = np.zeros((most + 1, len(lost)))  # at[j]: the probability of j stages
    at[0] = np.exp(-rate.sum(axis=1))
    once, twice = np.zeros_like(rate), np.zeros_like(rate)
    for j in range(1, most + 1):
        once = at[j - 1][:, None] + go_on * once
        twice = once + go_on * twice
        at[j] = (rate * (1 - go_on) * twice).sum(axis=1) / j
    beyond = np.maximum(0.0, 1 - at.sum(axis=0))
    more = np.cumsum(at[:0:-1], axis=0)[::-1] + np.where(beyond > 1e-12, beyond, 0.0)
    k = np.arange(most, dtype=np.float64)[:, None]
    poisson = np.exp(k * np.log(stages) - stages - scipy.special.gammaln(k + 1))
    return np.asarray(np.minimum(1.0, (poisson * more).sum(axis=0)))


_LEAST_OBSERVED = 0.9
"""Share of the time that should be observed."""
_MOST_UNENDED = 0.1
"""Share of the outages whose end may be missing."""
_MOST_TOGETHER = 0.2
"""Share of the components that may be down at once: more share a cause, and outages are not independent."""
_LEAST_COMPARED = 10
"""Outages from which on the lengths of the others say how long one lasts."""


def checked(ledger: Ledger) -> tuple[Assumption, ...]:
    return (_sampling(ledger), _noise(ledger), _independence(ledger))


def _sampling(ledger: Ledger) -> Assumption:
    observed, unknown = float(ledger.observed.sum()), float(ledger.unknown.sum())
    share = observed / max(1e-9, observed + unknown)
    unended = ledger.unended / max(1, len(ledger.spells))
    return Assumption(
        "sampling",
        share >= _LEAST_OBSERVED and unended <= _MOST_UNENDED,
        f"{percent(share)} of the time is observed ({percent(_LEAST_OBSERVED)} needed, the rest counts as up), and the "
        f"end is missing of {ledger.unended} of {so_many(len(ledger.spells), 'outage')}.",
    )


def _noise(ledger: Ledger) -> Assumption:
    outages = len(ledger.spells)
    owners = len(np.unique(ledger.spells.owner))
    return Assumption(
        "noise",
        outages == 0 or (outages >= _LEAST_COMPARED and owners >= 3),
        f"{so_many(outages, 'outage')} of {so_many(owners, 'component')} say how long one lasts; {_LEAST_COMPARED} of "
        "three are needed to compare one with the others.",
    )


def _independence(ledger: Ledger) -> Assumption:
    most = most_at_once(ledger)
    share = most / max(1, len(ledger.components))
    return Assumption(
        "independence",
        most < 3 or share <= _MOST_TOGETHER,
        f"At most {so_many(most, 'component')} of {len(ledger.components):,} went down within one minute "
        f"({percent(share)}; above {percent(_MOST_TOGETHER)} they share a cause).",
    )


def most_at_once(ledger: Ledger) -> int:
    """Most components that went down within one minute."""
    return int(_at_once(ledger).max(initial=0))


def shared(ledger: Ledger) -> NDArray[np.bool_]:
    """Spells that began within a minute with more components than may by chance, shape (spells,)."""
    size = _at_once(ledger)
    return np.asarray((size >= 3) & (size > _MOST_TOGETHER * len(ledger.components)))


def _at_once(ledger: Ledger) -> NDArray[np.int64]:
    """How many spells began in the minute of each, shape (spells,)."""
    _, place, size = np.unique(ledger.spells.start // MINUTE, return_inverse=True, return_counts=True)
    return np.asarray(size[place], dtype=np.int64)
