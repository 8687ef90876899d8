"""Tables and charts of a class's availability."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from analyzers.builtin.stats.intervals import MINUTE, microseconds, moment
from analyzers.builtin.stats.nines import (
    MONTH_MINUTES,
    TargetComparison,
    availability_of,
    show_availability,
    show_days,
    show_minutes,
)
from analyzers.builtin.text import count, hundredths, percent, so_many
from analyzers.builtin.vega import bars_over_time, ranked_bars
from analyzers.contract import Evidence, Window, chart, table, text
from ingest.log.types import rfc3339

if TYPE_CHECKING:
    from analyzers.builtin.tor_availability.outages import Measured

_WORST = 20
_BARS = 60
_GROUPS = 12


def needed(status: TargetComparison) -> str:
    return show_availability(status.required)


def pieces(window: Window, found: Measured) -> tuple[Evidence, ...]:
    out = [_target_evidence(found)]
    if len(found.seen.spells):
        out += [_by_cause(found), _worst(found), _over_time(found), _worst_chart(found)]
    if found.groups:
        out.append(_by_label(found))
    out.append(text("How this was computed", _account(window, found)))
    return tuple(out)


def _target_evidence(found: Measured) -> Evidence:
    status, seen = found.status, found.seen
    low = "no bound without an outage" if found.low is None else show_availability(found.low)
    verdict = (
        f"yes: dependents at {show_availability(availability_of(status.target_nines))} would spend more "
        "than a tenth of their budget on it"
        if status.on_critical_path
        else "no"
    )
    rows = (
        ("component", f"device_class/{found.kind}"),
        ("availability", status.shown),
        ("95 % interval", f"{low} to {show_availability(found.high)}"),
        ("required (one nine more than the dependents)", needed(status)),
        ("budget used", f"{status.budget_used:.3g} times"),
        ("on the critical path", verdict),
        ("devices", count(found.devices)),
        ("days", f"{seen.period / 1440:.4g}"),
        ("unplanned outages", count(len(seen.spells))),
        ("still going on", count(seen.ongoing)),
        ("began long ago, no end reported", count(len(seen.unended))),
        ("availability if those still last", found.worst.shown),
        ("out, unplanned", show_minutes(float(seen.lost.sum()))),
        ("out, planned (not counted)", show_minutes(float(seen.planned.sum()))),
        ("down per device and year", show_minutes(status.minutes_per_year)),
    )
    return table(f"Availability of {found.kind} devices", ("of the class", "figure"), rows)


def _by_cause(found: Measured) -> Evidence:
    seen, rows = found.seen, []
    minutes, total = seen.spells.minutes, float(seen.lost.sum())
    for number, cause in enumerate(seen.causes):
        mine = minutes[seen.cause == number]
        if len(mine):
            middle, ninety = np.quantile(mine, [0.5, 0.9])
            figures = (float(mine.mean()), float(middle), float(ninety), float(mine.max()), float(mine.sum()))
            shares = (hundredths(len(mine) / len(minutes)), hundredths(float(mine.sum()) / total))
            rows.append((cause, len(mine), shares[0], *(round(one, 1) for one in figures), shares[1]))
    columns = (
        "cause", "outages", "of all (%)", "mean (min)", "median (min)", "90 % within (min)", "longest (min)",
        "lost (min)", "of the loss (%)",
    )  # fmt: skip
    note = "Overlapping outages of one device are one, with the cause that held for most of it."
    return table("Unplanned outages by cause", columns, tuple(rows), note)


def _ranked(found: Measured) -> list[int]:
    lost, names = found.seen.lost, found.seen.devices
    blamed = np.zeros(len(names), dtype=bool)
    if not found.status.met:
        blamed = found.outstanding
    order = sorted(range(len(names)), key=lambda row: (not blamed[row], -lost[row], names[row]))
    most = max(_WORST, int(blamed.sum()))
    return [row for row in order if lost[row] > 0 or blamed[row]][:most]


def _worst(found: Measured) -> Evidence:
    seen, excess, total = found.seen, found.excess, float(found.seen.lost.sum())
    repeaters = found.repeaters
    rows = tuple(
        (
            seen.devices[row],
            int(seen.count[row]),
            round(float(excess.expected[row]), 2),
            round(float(seen.lost[row]), 1),
            round(float(seen.planned[row]), 1),
            hundredths(float(seen.lost[row]) / total),
            show_availability(max(0.0, 1 - float(seen.lost[row]) / seen.period)),
            float(excess.p[row]),
            float(excess.q[row]),
            "more often than its class"
            if repeaters[row]
            else "far longer than others"
            if found.outstanding[row]
            else "within chance",
        )
        for row in _ranked(found)
    )
    columns = (
        "device", "outages", "usual", "out (min)", "planned (min)", "of the loss (%)", "availability", "p", "q",
        "how often",
    )  # fmt: skip
    note = (
        "Usual is the number of outages at the rate of the rest. p: how probable as many are by chance; q: the same "
        "among so many devices. Outages that many devices share, and those within an hour of another, say nothing "
        "of how often a device goes out."
    )
    return table("Devices that lost most", columns, rows, note)


def _by_label(found: Measured) -> Evidence:
    rows = tuple(
        (
            f"{one.label} = {one.value}",
            one.devices,
            one.outages,
            round(one.minutes, 1),
            one.outages / one.devices,
            one.other_outages / one.other_devices,
        )
        for one in found.groups[:_GROUPS]
    )
    columns = ("label", "devices", "outages", "out (min)", "outages a device", "outages a device without it")
    return table("Common properties of devices", columns, rows, "Labels are those of the topology.")


def _over_time(found: Measured) -> Evidence:
    """Minutes lost in equal parts of the period, by cause."""
    seen = found.seen
    start, end = microseconds(found.start), microseconds(found.end)
    edges = start + (end - start) * np.arange(_BARS + 1) // _BARS
    used = [cause for number, cause in enumerate(seen.causes) if np.any(seen.cause == number)]
    values: list[dict[str, Any]] = []
    for cause in used:
        mine = seen.cause == seen.causes.index(cause)
        begun, over = seen.spells.start[mine][:, None], seen.spells.end[mine][:, None]
        inside = np.clip(np.minimum(over, edges[1:]) - np.maximum(begun, edges[:-1]), 0, None).sum(axis=0)
        values += [
            {
                "time": rfc3339(moment(int(edges[i]))),
                "until": rfc3339(moment(int(edges[i + 1]))),
                "part": cause,
                "amount": round(float(inside[i]) / MINUTE, 3),
            }
            for i in np.flatnonzero(inside).tolist()
        ]
    part = show_minutes(seen.period / _BARS)
    shown = "%-d %b" if seen.period > 2 * 1440 else "%H:%M"
    return chart(
        f"When {found.kind} devices were out", bars_over_time(values, f"minutes out per {part}", used, shown)
    )


def _worst_chart(found: Measured) -> Evidence:
    seen = found.seen
    used = [cause for number, cause in enumerate(seen.causes) if np.any(seen.cause == number)]
    values = []
    for row in _ranked(found)[:_WORST]:
        mine = seen.spells.owner == row
        for cause in used:
            amount = float(seen.spells.minutes[mine & (seen.cause == seen.causes.index(cause))].sum())
            if amount:
                values.append({"name": seen.devices[row], "part": cause, "amount": round(amount, 1)})
    return chart("Devices that lost most", ranked_bars(values, "minutes out, unplanned", used))


def _account(window: Window, found: Measured) -> str:
    seen, status = found.seen, found.status
    months = seen.period / MONTH_MINUTES
    parts = [
        f"1 - minutes out / (devices x minutes) = 1 - {seen.lost.sum():.6g} / ({count(found.devices)} x "
        f"{seen.period:.6g}) = {status.shown}."
    ]
    if len(seen.spells):
        rate = len(seen.spells) / found.devices / months
        mix = " + ".join(
            f"{np.mean(seen.cause == number):.3g} x {seen.spells.minutes[seen.cause == number].mean():.3g} min {cause}"
            for number, cause in enumerate(seen.causes)
            if np.any(seen.cause == number)
        )
        parts.append(
            f"In the terms of the talk: {percent(rate)} of the devices go out in 30 days, for {mix} on average."
        )
    parts.append(
        f"Dependents with {status.target_nines:g} nines need {needed(status)} of what they stand on (one nine "
        "more: The Calculus of Service Availability, ACM Queue 2017; Deepview's authors, NetAI 2018). The interval is "
        "that of Fay and Feuer (1997); it treats outages that begin within one minute as one event and allows for one "
        "more that lasts twice as long as the longest."
    )
    if not status.met:
        parts.append(
            "Devices that go out more often than chance allows, or one that lost most by an outage far longer than the "
            "others, are named; the class is, if what the others lost is improbable "
            f"(p = {found.chance:.2g}) where it has just what it needs and is most of the loss."
        )
    if seen.unended:
        parts.append(
            f"Told to be out since long ago, without an end: {so_many(len(seen.unended), 'device')}, "
            f"{', '.join(seen.unended[:5])}. Such an outage counts with the mean length of the ended ones; what it "
            f"would cost if it still lasts ({show_minutes(float(seen.doubtful.sum()))} more) is in the lower end of "
            "the interval."
        )
    days = (window.end - window.start).total_seconds() / 86400
    if seen.period / 1440 > days * 1.001:
        parts.append(
            f"The rows cover only the last {show_days(1440 * days)} of {show_days(seen.period)}: before that, no "
            "outage is known and none is assumed."
        )
    fleet = window.sums.get("fleet")
    if fleet is not None and fleet.later:
        parts.append(
            f"Known only since after the window's start: {so_many(fleet.later, 'component')}; devices among them count "
            "for all of it."
        )
    if found.devices == len(seen.devices) and fleet is None:
        parts.append(
            "Only devices that were out are known, and they make up the class here: set devices, or send "
            "topology, and the availability rises."
        )
    return " ".join(parts)
