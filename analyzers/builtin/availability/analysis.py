"""Availability: A = sum of time up / (sum of time up + sum of time down), and the components below target.

A component is below its target by more than chance (`below`) where outages on so many days, or so long ones, are
improbable for a component that meets its target, or for one like the others (`chances`). An outage or two says little:
with three nines a component may be down for 43 minutes a month, and one outage of an hour is below target without
being a sign of anything. Assumptions are checked on each window.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.availability import evidence
from analyzers.builtin.availability.chances import chances, days_of
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
    time = ledger.observed + ledger.unknown
    allowed = (1 - target) * time
    p = np.ones(len(ledger.components))
    below = np.flatnonzero((ledger.lost > allowed) & (ledger.lost > 0))
    judged = below[allowed[below] > 0]
    spells = ledger.spells
    idle = _never_out(ledger.components, labels)
    days = days_of(spells.start, spells.minutes, spells.owner)
    p[judged] = chances(days, time, allowed, ledger.lost, judged, idle * ledger.period)
    q = q_values(p, len(p) + idle)
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


def _never_out(reported: Sequence[str], known: Collection[str]) -> int:
    """Number of components known by topology only, of the kinds that rows tell of."""
    kinds = {name.partition("/")[0] for name in reported if "/" in name}
    return sum(name.partition("/")[0] in kinds for name in {*known} - {*reported})


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
    """Fault, as the end of a title that begins with the component."""
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
    """Number of spells that began in the minute of each, shape (spells,)."""
    _, place, size = np.unique(ledger.spells.start // MINUTE, return_inverse=True, return_counts=True)
    return np.asarray(size[place], dtype=np.int64)
