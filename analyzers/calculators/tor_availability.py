"""Availability of a class of devices, against what depends on it (Zhang et al., NetAI 2018)."""

from __future__ import annotations

from analyzers.builtin.stats.nines import (
    MONTH_MINUTES,
    OutageMix,
    TargetComparison,
    availability_of,
    show_availability,
    show_minutes,
    what_if_tor_availability,
)
from analyzers.calculators.form import Answer, Bar, Calculator, Curve, Figure, Rows, Values, place

LEAST, MOST = 0.001, 100.0
"""Per cent of the devices that go out in a month: what the curve spans."""
_POINTS = 60
_MOST_NINES = 9.0
_TARGETS = (2.0, 3.0, 4.0, 5.0, 6.0)

INPUTS = (
    Figure(
        "rebooted", "Devices that go out in a month", "%", 0.1, 0, 1000,
        "Share of all devices of the class; 100 % is each of them once.", LEAST, MOST, log=True,
    ),
    Figure(
        "soft", "Of these, back after a reboot", "%", 90, 0, 100,
        "Soft failures; the rest is broken and has to be replaced.", 0, 100,
    ),
    Figure(
        "soft_minutes", "A reboot takes", "min", 20, 0, MONTH_MINUTES, "From the failure until it works again.", 1, 240
    ),
    Figure(
        "hard_minutes", "A replacement takes", "min", 120, 0, MONTH_MINUTES, "Spare part and hands included.", 1, 1440
    ),
    Figure(
        "target_nines", "Dependents promise", "nines", 5, 0, 8,
        "5 nines are 99.999 %. A dependency needs one nine more than what depends on it.", 1, 8,
    ),
)  # fmt: skip


def work(values: Values) -> Answer:
    status = _target_comparison(values, values["rebooted"], values["target_nines"])
    needed = show_availability(status.required)
    promised = show_availability(availability_of(values["target_nines"]))
    verdict = (
        f"Good enough: dependents at {promised} need {needed} of it"
        if status.met
        else f"Not good enough: dependents at {promised} need {needed} of it"
    )
    mean = _mix(values).mean_minutes
    return Answer(
        shown=status.shown,
        verdict=verdict,
        good=status.met,
        sentences=(
            f"A device that goes out is out for {show_minutes(mean)} on average; each is down "
            f"{show_minutes(status.minutes_per_year)} in a year.",
            _critical(status, promised),
        ),
        measures={
            "availability": status.availability,
            "shown": status.shown,
            "required": status.required,
            "met": status.met,
            "critical_path": status.on_critical_path,
            "budget_used": status.budget_used,
            "mean_outage_minutes": mean,
            "minutes_per_year": status.minutes_per_year,
        },
        drawings=(_curve(values, status), _bar(values, status)),
        tables=(_by_target(values, status),),
    )


def _mix(values: Values) -> OutageMix:
    return OutageMix(values["soft"] / 100, values["soft_minutes"], values["hard_minutes"])


def _target_comparison(values: Values, rebooted: float, target: float) -> TargetComparison:
    return what_if_tor_availability(rebooted / 100, _mix(values), target)


def _critical(status: TargetComparison, promised: str) -> str:
    times = f"{status.budget_used:.2g} times" if status.budget_used >= 1 else f"{status.budget_used:.0%} of"
    used = f"It uses {times} what may be lost".replace("%", " %")
    if status.on_critical_path:
        return (
            f"{used}. One such device is on the critical path: what hangs on it alone cannot keep {promised}."
        )
    return f"{used}. A single device is not on the critical path: a second one gains nothing."


def _nines(status: TargetComparison) -> float:
    return min(_MOST_NINES, status.nines)


def _curve(values: Values, status: TargetComparison) -> Curve:
    """Nines over the share that goes out, as far as outages fit into the month."""
    points = []
    for step in range(_POINTS + 1):
        share = LEAST * (MOST / LEAST) ** (step / _POINTS)
        if _mix(values).mean_minutes * share / 100 <= MONTH_MINUTES:
            found = _nines(_target_comparison(values, share, values["target_nines"]))
            points.append((step / _POINTS, found / _MOST_NINES))
    needed = min(_MOST_NINES, values["target_nines"] + 1)
    mark = place(values["rebooted"], LEAST, MOST, log=True), _nines(status) / _MOST_NINES
    return Curve(
        title="Availability by how many devices go out in a month",
        x_label="devices that go out in a month",
        points=tuple(points),
        mark=mark,
        limit=needed / _MOST_NINES,
        limit_label=f"needed: {show_availability(status.required)}",
        x_ticks=tuple((place(x, LEAST, MOST, log=True), f"{x:g} %") for x in (0.001, 0.01, 0.1, 1, 10, 100)),
        y_ticks=tuple((n / _MOST_NINES, f"{n} nines") for n in (0, 3, 6, 9)),
        words=f"At {values['rebooted']:g} % a month it is {status.shown}; needed are "
        f"{show_availability(status.required)}.",
    )


def _bar(values: Values, status: TargetComparison) -> Bar:
    """Minutes lost in a year by sort, against those that may be lost."""
    mix = _mix(values)
    a_year = status.minutes_per_year / mix.mean_minutes if mix.mean_minutes else 0.0
    soft, hard = a_year * mix.soft * mix.soft_minutes, a_year * (1 - mix.soft) * mix.hard_minutes
    allowed = TargetComparison(status.required, status.required, status.target_nines).minutes_per_year
    whole = max(soft + hard, allowed) or 1.0
    parts = (
        (f"reboots {show_minutes(soft)}", soft / whole),
        (f"replacements {show_minutes(hard)}", hard / whole),
    )
    return Bar(
        title="Loss of one device in a year",
        parts=parts,
        limit=allowed / whole,
        limit_label=f"allowed {show_minutes(allowed)}",
        words=f"{parts[0][0]}, {parts[1][0]}; allowed are {show_minutes(allowed)}.",
    )


def _by_target(values: Values, status: TargetComparison) -> Rows:
    targets = sorted({*_TARGETS, values["target_nines"]})
    rows = []
    for target in targets:
        one = _target_comparison(values, values["rebooted"], target)
        rows.append(
            (
                show_availability(availability_of(target)),
                show_availability(one.required),
                f"{one.budget_used:.3g} ×",
                "no" if one.met else "yes",
            )
        )
    columns = ("Dependents promise", "Needed of each device", "Of what may be lost", "On the critical path")
    note = f"With the inputs above: {status.shown}."
    return Rows(
        "Requirements that it meets", columns, tuple(rows), note, targets.index(values["target_nines"])
    )


TOR_AVAILABILITY = Calculator(
    slug="tor-availability",
    title="ToR availability",
    question="Is a single top-of-rack switch reliable enough for its dependents, or is it on the critical path?",
    formula="1 − (soft × reboot + (1 − soft) × replacement) × devices out a month ÷ 43,200 min",
    analyzer="tor_availability",
    inputs=INPUTS,
    work=work,
)
