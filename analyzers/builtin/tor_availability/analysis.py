"""Availability of a device class against the requirement of its dependents (Zhang et al., NetAI 2018).

Assumptions are checked on each window.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime, timedelta

import numpy as np

from analyzers.builtin.paths import texts
from analyzers.builtin.stats.intervals import microseconds, moment
from analyzers.builtin.stats.nines import (
    UNSEEN,
    TargetComparison,
    lost_interval,
    missed_by_chance,
    required_of_dependency,
    show_days,
    show_minutes,
)
from analyzers.builtin.text import count, percent, so_many
from analyzers.builtin.tor_availability import evidence
from analyzers.builtin.tor_availability.outages import (
    REPEATER,
    Group,
    Measured,
    Outages,
    excess_of,
    groups_of,
    out_for_long,
    outages_of,
)
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

SURE = 0.01
"""Share of false ones among the devices of which one window is enough to say that they go out more often than their
class."""

MISSED = 0.05
"""Largest probability that a class that is good enough loses as much, for the class to be named."""

CLASS_SHARE = 0.5
"""Share of the loss that devices which do not stand out must have for the class to be named beside those that do."""


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
    return verdict_of(
        window,
        measure(
            kind,
            start,
            end,
            devices,
            seen,
            float(params["target_nines"]),
            groups_of(seen, fleet),
            fleet,
            int(params["devices"]),
        ),
    )


def class_component(kind: str) -> str:
    """The class of devices of a kind as a component: `device_class/tor`."""
    return f"device_class/{kind}"


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
    fleet: Sums | None = None,
    stated: int = 0,
) -> Measured:
    """`stated` is the number of devices given as a parameter, 0 for none."""
    total = devices * seen.period
    least, most = lost_interval(seen.event_minutes(), total, unseen=UNSEEN)
    availability, doubtful = 1 - float(seen.lost.sum()) / total, float(seen.doubtful.sum()) / total
    required = required_of_dependency(target_nines)
    excess = excess_of(seen, devices, REPEATER)
    outstanding = excess.repeaters(REPEATER) | out_for_long(seen)
    assumptions = checked(seen, kind, stated, fleet, excess.scatter)
    return Measured(
        kind=kind,
        start=start,
        end=end,
        devices=devices,
        seen=seen,
        status=TargetComparison(availability, required, target_nines),
        worst=TargetComparison(max(0.0, availability - doubtful), required, target_nines),
        low=None if most is None else max(0.0, 1 - most - doubtful),
        high=1 - least,
        excess=excess,
        groups=groups,
        outstanding=outstanding,
        chance=missed_by_chance(seen.event_minutes(outstanding), (1 - required) * total),
        assumptions=assumptions,
    )


def _nothing_to_judge(window: Window, seen: Outages, kind: str, devices: int) -> str | None:
    if devices == 0:
        others = sorted({name.partition("/")[0] for name in texts(window.sums["outages"], "device")})
        hint = f"; the outages are of {', '.join(others[:5])}: set device_class" if others else ""
        return f"No device of kind {kind} is known{hint}. Set devices, or send topology."
    if devices < len(seen.devices):
        return f"devices={devices}, but the rows name {len(seen.devices)} different devices of kind {kind}."
    return None


def verdict_of(window: Window, found: Measured) -> Verdict:
    status, seen = found.status, found.seen
    by_cause = dict(
        zip(seen.causes, np.bincount(seen.cause, minlength=len(seen.causes)).tolist(), strict=True)
    )
    measures = {
        "availability": status.availability,
        "required": status.required,
        "devices": found.devices,
        "low": found.low,
        "high": found.high,
        "unavailability": 1 - status.availability,
        "budget_used": status.budget_used,
        "critical_path": status.on_critical_path,
        "outages": len(seen.spells),
        "unended_outages": len(seen.unended),
        "availability_if_still_out": found.worst.availability,
        "outages_by_cause": by_cause,
        "minutes_lost": float(seen.lost.sum()),
        "minutes_planned": float(seen.planned.sum()),
        "days": seen.period / 1440,
        "shown": status.shown,
    }
    measures |= {"missed_by_chance": found.chance, "standing_out": int(found.outstanding.sum())}
    shown = evidence.pieces(window, found)
    if status.met and found.worst.met:
        return quiet(measures, shown, found.assumptions)
    if status.met:
        return Verdict("inconclusive", (), _undecided(found), measures, shown, found.assumptions)
    suspects = _suspects(found)
    if not suspects:
        return Verdict("inconclusive", (), _not_named(found), measures, shown, found.assumptions)
    return Verdict("named", suspects, None, measures, shown, found.assumptions)


def _not_named(found: Measured) -> str:
    """Reason why a class that stands below its target is not named."""
    if not counted(found.assumptions):
        return (
            f"How many {found.kind} devices there are is not known, so that the class cannot be judged, and none of "
            "those that were out stands out. Set devices, or send topology."
        )
    return (
        f"The class stands at {found.status.shown} and needs {evidence.needed(found.status)}, but "
        f"{so_many(len(found.seen.spells), 'outage')} may come by chance in a class that is good enough "
        f"(p = {found.chance:.2g}), and no device stands out. A longer window is needed."
    )


def _undecided(found: Measured) -> str:
    names, more = found.seen.unended[:3], len(found.seen.unended) - 3
    devices = f"{', '.join(names)}{f' and {more} more' if more > 0 else ''}"
    return (
        f"Of outages of {devices} no end was reported. If they ended as others do, the class stands at "
        f"{found.status.shown} and keeps the {evidence.needed(found.status)} that it needs; if they still last, at "
        f"{found.worst.shown}. Send their ends, or set open_hours to have them counted in full."
    )


def _suspects(found: Measured) -> tuple[Suspect, ...]:
    """The devices that stand out, worst first; then the class, if it misses without them as well and most of what was
    lost is not theirs.
    """
    seen, shared = found.seen, common_label(found)
    order = sorted(range(len(seen.devices)), key=lambda row: (-seen.lost[row], seen.devices[row]))
    suspects = [_device(found, row, shared) for row in order if found.outstanding[row]]
    rest = 1 - float(seen.lost[found.outstanding].sum()) / float(seen.lost.sum())
    if found.chance < MISSED and rest > CLASS_SHARE and counted(found.assumptions):
        suspects.append(_class(found))
    return tuple(suspects)


def _device(found: Measured, row: int, shared: Group | None) -> Suspect:
    seen = found.seen
    mine = np.arange(*np.searchsorted(seen.spells.owner, (row, row + 1)))
    repeats = bool(found.repeaters[row])
    lost = float(seen.lost[row]) / seen.period
    least, most = lost_interval([float(one) for one in seen.spells.minutes[mine]], seen.period, unseen=UNSEEN)
    return Suspect(
        component=seen.devices[row],
        score=None,
        summary=_sentence(found, row, repeats, shared),
        p_value=float(found.excess.p[row]) if repeats else None,
        q_value=float(found.excess.q[row]) if repeats else None,
        estimate=Estimate(lost, min(least, lost), max(most or 0.0, lost), "was out {} of the time"),
        sure=float(found.excess.q[row]) < SURE and found.surely_missed,
        first_failure=moment(int(seen.spells.start[mine].min())),
        last_failure=moment(int(seen.spells.end[mine].max())),
        phrase=_summary(found, row, repeats),
    )


def _class(found: Measured) -> Suspect:
    """The class as a whole: what its devices lose that do not stand out is more than its dependents can bear."""
    seen, status = found.seen, found.status
    rest = ~found.outstanding[seen.spells.owner]
    devices = len(np.unique(seen.spells.owner[rest]))
    lost = 1 - status.availability
    detail = (
        f"{so_many(int(rest.sum()), 'outage')} of {so_many(devices, 'device')} in {show_days(seen.period)}, "
        f"{show_minutes(float(seen.spells.minutes[rest].sum()))} in all"
    )
    apart = "none of which stands out" if not found.outstanding.any() else "beside those that stand out"
    return Suspect(
        component=class_component(found.kind),
        score=lowered(1 - found.chance, found.assumptions),
        summary=(
            f"The class of {count(found.devices)} {found.kind} devices misses what its dependents need: it stands at "
            f"{status.shown} and needs {evidence.needed(status)}. {detail}, {apart}."
        ),
        p_value=found.chance,
        estimate=Estimate(
            lost, min(1 - found.high, lost), max(1 - (found.low or 0.0), lost), "was out {} of the time"
        ),
        sure=found.chance < SURE,
        first_failure=moment(int(seen.spells.start[rest].min())),
        last_failure=moment(int(seen.spells.end[rest].max())),
        phrase=f"misses {evidence.needed(status)}: {detail}, {apart}",
    )


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


def _summary(found: Measured, row: int, repeats: bool) -> str:
    """Fault, as the end of a title that begins with the device."""
    seen, times = found.seen, int(found.seen.count[row])
    spent = f"was out {_often(times)}, {show_minutes(float(seen.lost[row]))} in {show_days(seen.period)}"
    if not repeats:
        return f"{spent}, far longer than other {found.kind} devices"
    return f"{spent}, where {_usual(float(found.excess.expected[row]))} would be usual"


def _sentence(found: Measured, row: int, repeats: bool, group: Group | None) -> str:
    seen, status = found.seen, found.status
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
        else ", far longer than any other outage"
    )
    if repeats and group is not None and row in group.rows:
        others = len(set(np.flatnonzero(found.repeaters).tolist()) & group.rows) - 1
        device = "other such device" if others == 1 else "other such devices"
        why += f", and it shares {group.label} = {group.value} with {others} {device}"
    return f"{spent}{why}. The class stands at {status.shown} and needs {evidence.needed(status)}."


_MOST_UNKNOWN = 0.05
"""Share of the devices that were out which the topology may not know."""
_MOST_UNENDED = 0.1
"""Share of the outages whose end may be missing."""
_LOWERED = 1.0
"""Nats that the odds of the class's probability lose for each assumption that does not hold."""


def checked(
    seen: Outages, kind: str, stated: int, fleet: Sums | None, scatter: float
) -> tuple[Assumption, ...]:
    """`stated` is the number of devices given as a parameter, 0 for none; `scatter` as `Excess` has it."""
    return (_topology(seen, kind, stated, fleet), _sampling(seen), _noise(scatter))


def counted(assumptions: Sequence[Assumption]) -> bool:
    """Whether the size of the class is known; otherwise only devices that were out are."""
    return not any(one.name == "topology" and one.detail.startswith(_UNCOUNTED) for one in assumptions)


def lowered(probability: float, assumptions: Sequence[Assumption]) -> float:
    """The probability after what its odds lose to assumptions that do not hold; at most .999."""
    lost = _LOWERED * sum(not one.holds for one in assumptions)
    bounded = min(0.999, probability)
    return bounded if not lost else 1 / (1 + math.exp(lost - math.log(bounded / (1 - bounded))))


_UNCOUNTED = "Only devices that were out are known"


def _topology(seen: Outages, kind: str, stated: int, fleet: Sums | None) -> Assumption:
    if stated:
        return Assumption(
            "topology", True, f"The class has {so_many(stated, 'device')}, as the parameter says."
        )
    if fleet is None:
        return Assumption(
            "topology", False, f"{_UNCOUNTED}: the class is not judged without topology or devices."
        )
    known = {name for name in texts(fleet, "component") if name.startswith(f"{kind}/")}
    out = [name for name, times in zip(seen.devices, seen.count.tolist(), strict=True) if times]
    unknown = sum(name not in known for name in out)
    share = unknown / max(1, len(out))
    return Assumption(
        "topology",
        share <= _MOST_UNKNOWN,
        f"The topology knows {so_many(len(known), 'device')} of the class, not {unknown} of {len(out)} that were out "
        f"({percent(share)}; up to {percent(_MOST_UNKNOWN)} is taken as complete).",
    )


def _sampling(seen: Outages) -> Assumption:
    share = len(seen.unended) / max(1, len(seen.spells))
    return Assumption(
        "sampling",
        share <= _MOST_UNENDED,
        f"The end is missing of {len(seen.unended)} of {so_many(len(seen.spells), 'outage')}; up to "
        f"{percent(_MOST_UNENDED)} is taken as complete.",
    )


def _noise(scatter: float) -> Assumption:
    if scatter <= 0:
        return Assumption(
            "noise", True, "The counts of the devices that do not stand out scatter as chance does."
        )
    return Assumption(
        "noise",
        False,
        f"Rates of outages differ between devices by {percent(math.sqrt(scatter))}: a device must stand out from that.",
    )
