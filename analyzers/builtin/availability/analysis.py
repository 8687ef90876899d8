"""Availability: A = sum of time up / (sum of time up + sum of time down), and who is below target."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.availability import evidence
from analyzers.builtin.availability.assumptions import checked, shared
from analyzers.builtin.availability.below import chances, days_by_chance, lengths_of_others, together
from analyzers.builtin.availability.ledger import Ledger, groups_of, ledger_of
from analyzers.builtin.availability.result import Found
from analyzers.builtin.paths import texts
from analyzers.builtin.stats.intervals import microseconds, moment
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
from analyzers.contract import (
    Estimate,
    Params,
    Sums,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
)
from ingest.telemetry.component_names import is_component

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
    told = all(one.holds for one in assumptions if one.name == "sampling")
    together = shared(ledger)
    suspects = tuple(_suspect(found, row, told, together) for row in found.named)
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


def _suspect(found: Found, row: int, told: bool, together: NDArray[np.bool_]) -> Suspect:
    """One window is enough to act on only where enough is `told`, and most outages are not `together` with others'."""
    ledger = found.ledger
    mine = np.flatnonzero(ledger.spells.owner == row)
    own = told and 2 * int(together[mine].sum()) <= len(mine)
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
        says=_summary(found, row),
    )


def _summary(found: Found, row: int) -> str:
    """What is wrong, as the end of a title that begins with the component."""
    ledger = found.ledger
    told = float(ledger.observed[row]) + float(ledger.unknown[row])
    lost, allowed = show_minutes(float(ledger.lost[row])), show_minutes((1 - found.target) * told)
    return f"was down for {lost} in {show_days(told)}, where {allowed} are allowed"


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
