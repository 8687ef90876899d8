"""The availability of a device class, held against what its dependents need (Zhang et al., NetAI 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

import numpy as np

from analyzers.builtin.intervals import microseconds, moment
from analyzers.builtin.keys import texts
from analyzers.builtin.nines import (
    UNSEEN,
    Standing,
    lost_interval,
    required_of_dependency,
    show_days,
    show_minutes,
)
from analyzers.builtin.open_ends import OPEN_HOURS
from analyzers.builtin.outage_rows import FLEET, OUTAGES
from analyzers.builtin.tor_availability import evidence
from analyzers.builtin.tor_availability.outages import (
    Excess,
    Group,
    Outages,
    excess_of,
    groups_of,
    outages_of,
)
from analyzers.builtin.words import count, percent
from analyzers.contract import (
    Analyzer,
    Estimate,
    Input,
    Param,
    Params,
    Suspect,
    Verdict,
    Window,
    inconclusive,
    quiet,
)

REPEATER, SURE = 0.05, 0.01
"""Share of false ones among the devices that are said to go out more often than their class, and among those of
which one window is enough to say so."""

PARAMS = (
    Param("window_days", 0.0, "measure the last so many days of the window; 0: all of it", low=0, high=3660),
    Param("target_nines", 5.0, "nines that the dependents promise; the class needs one more", low=0, high=9),
    Param("devices", 0, "how many devices the class has; 0: those that the rows name", low=0, high=10**9),
    Param("device_class", "tor", "the kind of component that makes up the class"),
    OPEN_HOURS,
)


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """What the period showed. `low` and `high` bound the availability; `low` is None without an outage. `worst` is the
    availability if outages whose end was never told went on until the end; `low` leaves room for that.
    """

    kind: str
    start: datetime
    end: datetime
    devices: int
    seen: Outages
    standing: Standing
    worst: Standing
    low: float | None
    high: float
    excess: Excess
    groups: tuple[Group, ...]

    @property
    def repeaters(self) -> np.ndarray:
        return self.excess.repeaters(REPEATER)

    @property
    def surely_missed(self) -> bool:
        return self.high < self.standing.required


def analyze(window: Window, params: Params) -> Verdict:
    kind = str(params["device_class"])
    start, end = period(window, float(params["window_days"]))
    fleet = window.sums.get("fleet")
    bounds = microseconds(start), microseconds(end)
    seen = outages_of(window.sums["outages"], fleet, kind, *bounds, float(params["open_hours"]))
    devices = int(params["devices"]) or len(seen.devices)
    reason = _nothing_to_judge(window, seen, kind, devices)
    if reason is not None:
        return inconclusive(reason, {"devices": devices})
    return tell(
        window,
        measure(kind, start, end, devices, seen, float(params["target_nines"]), groups_of(seen, fleet)),
    )


def period(window: Window, days: float) -> tuple[datetime, datetime]:
    """The last `days` of the window, all of it for 0; more than the window holds counts as quiet before it."""
    return (window.end - timedelta(days=days) if days else window.start), window.end


def measure(
    kind: str,
    start: datetime,
    end: datetime,
    devices: int,
    seen: Outages,
    target_nines: float,
    groups: tuple[Group, ...],
) -> Measured:
    total = devices * seen.period
    least, most = lost_interval(seen.event_minutes(), total, unseen=UNSEEN)
    availability, doubtful = 1 - float(seen.lost.sum()) / total, float(seen.doubtful.sum()) / total
    required = required_of_dependency(target_nines)
    return Measured(
        kind=kind,
        start=start,
        end=end,
        devices=devices,
        seen=seen,
        standing=Standing(availability, required, target_nines),
        worst=Standing(max(0.0, availability - doubtful), required, target_nines),
        low=None if most is None else max(0.0, 1 - most - doubtful),
        high=1 - least,
        excess=excess_of(seen, devices, REPEATER),
        groups=groups,
    )


def _nothing_to_judge(window: Window, seen: Outages, kind: str, devices: int) -> str | None:
    if devices == 0:
        others = sorted({name.partition("/")[0] for name in texts(window.sums["outages"], "device")})
        hint = f"; the outages are of {', '.join(others[:5])}: set device_class" if others else ""
        return f"No device of kind {kind} is known{hint}. Set devices, or send topology."
    if devices < len(seen.devices):
        return f"devices={devices}, but the rows name {len(seen.devices)} different devices of kind {kind}."
    return None


def tell(window: Window, found: Measured) -> Verdict:
    standing, seen = found.standing, found.seen
    by_cause = dict(
        zip(seen.causes, np.bincount(seen.cause, minlength=len(seen.causes)).tolist(), strict=True)
    )
    measures = {
        "availability": standing.availability,
        "required": standing.required,
        "devices": found.devices,
        "low": found.low,
        "high": found.high,
        "unavailability": 1 - standing.availability,
        "budget_used": standing.budget_used,
        "critical_path": standing.on_critical_path,
        "outages": len(seen.spells),
        "unended_outages": len(seen.unended),
        "availability_if_still_out": found.worst.availability,
        "outages_by_cause": by_cause,
        "minutes_lost": float(seen.lost.sum()),
        "minutes_planned": float(seen.planned.sum()),
        "days": seen.period / 1440,
        "shown": standing.shown,
    }
    shown = evidence.pieces(window, found)
    if standing.met and not found.worst.met:
        return Verdict("inconclusive", (), _undecided(found), measures, shown)
    if standing.met:
        return quiet(measures, shown)
    return Verdict("named", _suspects(found), None, measures, shown)


def _undecided(found: Measured) -> str:
    names, more = found.seen.unended[:3], len(found.seen.unended) - 3
    told = f"{', '.join(names)}{f' and {more} more' if more > 0 else ''}"
    return (
        f"Of outages of {told} no end was told. If they ended as others do, the class stands at "
        f"{found.standing.shown} and keeps the {evidence.needed(found.standing)} that it needs; if they still last, at "
        f"{found.worst.shown}. Send their ends, or set open_hours to have them counted in full."
    )


def spenders(found: Measured) -> list[int]:
    """Rows of the devices to look at, worst first: those that go out more often than their class; if none
    does, the one that lost most.
    """
    order = sorted(
        range(len(found.seen.devices)), key=lambda row: (-found.seen.lost[row], found.seen.devices[row])
    )
    repeats = found.repeaters
    return [row for row in order if repeats[row]] or order[:1]


def _suspects(found: Measured) -> tuple[Suspect, ...]:
    seen, repeaters, shared = found.seen, found.repeaters, common_label(found)
    suspects = []
    for row in spenders(found):
        mine = np.arange(*np.searchsorted(seen.spells.owner, (row, row + 1)))
        repeats = bool(repeaters[row])
        lost = float(seen.lost[row]) / seen.period
        least, most = lost_interval(
            [float(one) for one in seen.spells.minutes[mine]], seen.period, unseen=UNSEEN
        )
        suspects.append(
            Suspect(
                component=seen.devices[row],
                score=None,
                summary=_sentence(found, row, repeats, shared),
                p_value=float(found.excess.p[row]),
                q_value=float(found.excess.q[row]),
                estimate=Estimate(lost, min(least, lost), max(most or 0.0, lost), "was out {} of the time"),
                sure=float(found.excess.q[row]) < SURE and found.surely_missed,
                first_failure=moment(int(seen.spells.start[mine].min())),
                last_failure=moment(int(seen.spells.end[mine].max())),
                says=_said(found, row, repeats),
            )
        )
    return tuple(suspects)


def common_label(found: Measured) -> Group | None:
    """The label that nearly all repeaters have and few others, if there is one."""
    repeaters = set(np.flatnonzero(found.repeaters).tolist())
    for group in found.groups:
        rare = group.devices <= len(found.seen.devices) / 2
        if rare and len(repeaters & group.rows) >= max(2.0, 0.8 * len(repeaters)):
            return group
    return None


def _usual(outages: float) -> str:
    return f"about {count(round(outages, 1))} times" if outages >= 1 else "less than once"


def _often(times: int) -> str:
    return "once" if times == 1 else f"{times} times"


def _said(found: Measured, row: int, repeats: bool) -> str:
    """What is wrong, as the end of a title that begins with the device."""
    seen, times = found.seen, int(found.seen.count[row])
    spent = f"was out {_often(times)}, {show_minutes(float(seen.lost[row]))} in {show_days(seen.period)}"
    if not repeats:
        return f"{spent}, the most of {found.kind} devices"
    return f"{spent}, where {_usual(float(found.excess.expected[row]))} would be usual"


def _sentence(found: Measured, row: int, repeats: bool, group: Group | None) -> str:
    seen, standing = found.seen, found.standing
    times = int(seen.count[row])
    share = float(seen.lost[row]) / float(seen.lost.sum())
    spent = (
        f"{seen.devices[row]} was out {_often(times)}, "
        f"{show_minutes(float(seen.lost[row]))} in {show_days(seen.period)}, "
        f"{percent(share)} of what all {count(found.devices)} {found.kind} devices lost"
    )
    why = (
        f"; {_usual(float(found.excess.expected[row]))} would be usual"
        if repeats
        else ", the most of any; no device goes out more often than chance allows"
    )
    if repeats and group is not None and row in group.rows:
        others = len(set(np.flatnonzero(found.repeaters).tolist()) & group.rows) - 1
        device = "other such device" if others == 1 else "other such devices"
        why += f", and it shares {group.label} = {group.value} with {others} {device}"
    return f"{spent}{why}. The class stands at {standing.shown} and needs {evidence.needed(standing)}."


ANALYZER = Analyzer(
    name="tor_availability",
    version="1.2.1",
    title="Availability of a device class, such as ToRs, against the tier that depends on it",
    inputs=(Input("fleet", (OUTAGES, FLEET)), Input("outages", (OUTAGES,))),
    params=PARAMS,
    analyze=analyze,
)
