"""Tables and charts of availability: in all, by kind and label, by cause, by component."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyzers.builtin.stats.intervals import MINUTE, microseconds, moment
from analyzers.builtin.stats.nines import downtime_per_year, nines, show_availability, show_minutes
from analyzers.builtin.text import count, hundredths, percent, so_many
from analyzers.builtin.vega import bars_over_time, ranked_bars
from analyzers.contract import Evidence, Window, chart, table, text
from ingest.log.types import rfc3339

if TYPE_CHECKING:
    from analyzers.builtin.availability.ledger import Found

_ROWS = 500
_GROUPS = 100
_DRAWN = 20
_BARS = 60
_CAUSES = 8
OTHER = "other causes"


def pieces(window: Window, found: Found) -> tuple[Evidence, ...]:
    out = [_by_group(found)]
    if len(found.ledger.spells):
        out += [_by_cause(found), _by_component(found), _over_time(window, found), _worst(found)]
    return (*out, text("How this was computed", _account(found)))


def _target_met(lost: float, observed: float) -> tuple[str, float | None, str]:
    """Availability as shown, nines (None: nothing lost) and downtime a year."""
    availability = max(0.0, 1 - lost / observed)
    digits = round(nines(availability), 2) if lost > 0 else None
    return show_availability(availability), digits, show_minutes(downtime_per_year(availability))


def _by_group(found: Found) -> Evidence:
    ledger = found.ledger
    rows = []
    for group in found.groups[:_GROUPS]:
        members = list(group.rows)
        observed, lost = float(ledger.observed[members].sum()), float(ledger.lost[members].sum())
        if observed > 0:
            figures = (len(members), int(ledger.outages[members].sum()), round(lost, 1))
            rows.append((f"{group.label} = {group.value}", *figures, *_target_met(lost, observed)))
    observed, lost = float(ledger.observed.sum()), float(ledger.lost.sum())
    figures = (len(ledger.components), len(ledger.spells), round(lost, 1))
    everything = ("everything", *figures, *_target_met(lost, observed))
    columns = (
        "group",
        "components",
        "outages",
        "down (min)",
        "availability",
        "nines",
        "down per component and year",
    )
    note = "By kind of component and by the labels of the topology; planned work is left out."
    return table("Availability", columns, (everything, *rows), note)


def _by_cause(found: Found) -> Evidence:
    ledger, total = found.ledger, float(found.ledger.lost.sum())
    minutes, rows = ledger.spells.minutes, []
    for number in _common(found):
        mine = minutes[ledger.cause == number]
        touched = len(np.unique(ledger.spells.owner[ledger.cause == number]))
        middle, longest = float(np.median(mine)), float(mine.max())
        figures = (
            round(float(mine.sum()), 1),
            hundredths(float(mine.sum()) / total),
            round(float(mine.mean()), 1),
        )
        rows.append(
            (ledger.causes[number], touched, len(mine), *figures, round(middle, 1), round(longest, 1))
        )
    columns = (
        "cause", "components", "outages", "down (min)", "of the downtime (%)", "mean (min)", "median (min)",
        "longest (min)",
    )  # fmt: skip
    return table("Downtime by cause", columns, tuple(rows))


def _common(found: Found) -> list[int]:
    """Causes that cost time, most costly first."""
    cost = found.ledger.by_cause.sum(axis=0)
    order = sorted(range(len(cost)), key=lambda number: (-cost[number], found.ledger.causes[number]))
    return [number for number in order if cost[number] > 0]


def _ranked(found: Found, most: int) -> list[int]:
    ledger = found.ledger
    order = sorted(range(len(ledger.components)), key=lambda row: (-ledger.lost[row], ledger.components[row]))
    rest = [row for row in order if row not in found.named and ledger.lost[row] > 0]
    return [*found.named, *rest][: max(most, len(found.named))]


def _by_component(found: Found) -> Evidence:
    ledger = found.ledger
    common = _common(found)
    drawn, others = common[:_CAUSES], common[_CAUSES:]
    rows = []
    for row in _ranked(found, _ROWS):
        by_cause = [round(float(ledger.by_cause[row, number]), 1) for number in drawn]
        if others:
            by_cause.append(round(float(ledger.by_cause[row, others].sum()), 1))
        lost, observed = float(ledger.lost[row]), float(ledger.observed[row])
        judged = "below target" if row in found.named else "within chance" if found.q[row] < 1 else ""
        untold = (round(float(ledger.planned[row]), 1), round(float(ledger.unknown[row]), 1))
        figures = (int(ledger.outages[row]), round(lost, 1), *untold)
        status = _target_met(lost, observed) if observed > 0 else ("", None, "")
        rows.append((ledger.components[row], *status, *figures, *by_cause, float(found.q[row]), judged))
    causes = [f"{ledger.causes[number]} (min)" for number in drawn] + ([f"{OTHER} (min)"] if others else [])
    columns = (
        "component", "availability", "nines", "down per year", "outages", "down (min)", "planned (min)",
        "nothing known (min)", *causes, "q", "judged",
    )  # fmt: skip
    note = (
        "q: the chance of so long outages, or of outages on so many days, in a component that meets its target, among "
        "as many components; time of which nothing is known counts as up."
    )
    hidden = int(np.sum(ledger.lost > 0)) - len(rows)
    note += f" Not listed: {so_many(hidden, 'component')} with less downtime." if hidden > 0 else ""
    return table("Downtime by component and cause", columns, tuple(rows), note)


def _parts(found: Found) -> tuple[list[str], dict[int, str]]:
    """The causes to draw and what each cause is drawn as."""
    common = _common(found)
    shown = {
        number: found.ledger.causes[number] if place < 5 else OTHER for place, number in enumerate(common)
    }
    return list(dict.fromkeys(shown.values())), shown


def _over_time(window: Window, found: Found) -> Evidence:
    ledger = found.ledger
    start, end = microseconds(window.start), microseconds(window.end)
    edges = start + (end - start) * np.arange(_BARS + 1) // _BARS
    names, shown = _parts(found)
    amount = {name: np.zeros(_BARS) for name in names}
    for number, name in shown.items():
        mine = ledger.cause == number
        for begun, over in zip(ledger.spells.start[mine], ledger.spells.end[mine], strict=True):
            first, last = np.searchsorted(edges, (begun, over)) - (1, 0)
            first = max(int(first), 0)
            low, high = edges[first : int(last)], edges[first + 1 : int(last) + 1]
            amount[name][first : int(last)] += np.clip(
                np.minimum(over, high) - np.maximum(begun, low), 0, None
            )
    values: list[dict[str, Any]] = [
        {
            "time": rfc3339(moment(int(edges[i]))),
            "until": rfc3339(moment(int(edges[i + 1]))),
            "part": name,
            "amount": round(float(amount[name][i]) / MINUTE, 3),
        }
        for name in names
        for i in np.flatnonzero(amount[name]).tolist()
    ]
    unit = f"minutes down per {show_minutes(ledger.period / _BARS)}"
    pattern = "%-d %b" if ledger.period > 2 * 1440 else "%H:%M"
    return chart("Downtime over time", bars_over_time(values, unit, names, pattern))


def _worst(found: Found) -> Evidence:
    names, shown = _parts(found)
    ledger = found.ledger
    values: list[dict[str, Any]] = []
    for row in _ranked(found, _DRAWN)[:_DRAWN]:
        amounts = dict.fromkeys(names, 0.0)
        for number, name in shown.items():
            amounts[name] += float(ledger.by_cause[row, number])
        for name, amount in amounts.items():
            if amount:
                values.append({"name": ledger.components[row], "part": name, "amount": round(amount, 1)})
    return chart("Components that were down longest", ranked_bars(values, "minutes down, unplanned", names))


def _account(found: Found) -> str:
    ledger = found.ledger
    unknown = float(ledger.unknown.sum())
    whole = float(ledger.observed.sum()) + unknown
    unended = (
        f" Without an end, though begun long ago: {so_many(ledger.unended, 'outage')}, taken to have lasted as long as "
        "the others, and what came after as not known."
        if ledger.unended
        else ""
    )
    return (
        f"Availability is time up over time observed, without planned work: 1 - {ledger.lost.sum():.6g} / "
        f"{ledger.observed.sum():.6g} minutes. {count(found.below)} of {count(len(ledger.components))} components "
        f"are below {show_availability(found.target)}; named are those for which outages on so many days, or so long "
        "ones, are improbable if their true availability were the target, or, where twice what is allowed was lost, if "
        "they were like the others (5 % false ones allowed). What only outages speak of is taken as observed all "
        f"the time. {percent(1 - unknown / whole)} of the time was observed; the rest counts as up when components are "
        f"judged, and nowhere else.{unended}"
    )
