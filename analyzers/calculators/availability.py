"""Nines of one unit by its outages, against a target, and whether that says anything about it."""

from __future__ import annotations

import numpy as np

from analyzers.builtin.availability.chances import chance_of_sum
from analyzers.builtin.stats.nines import (
    availability_of,
    downtime_per_year,
    lost_interval,
    meets,
    nines,
    show_availability,
    show_days,
    show_minutes,
    uptime_share,
)
from analyzers.builtin.text import percent
from analyzers.calculators.form import Answer, Bar, Calculator, Figure, Rows, Values

_DAY = 24 * 60
_TARGETS = (2.0, 3.0, 4.0, 5.0)

INPUTS = (
    Figure("days", "Watched for", "days", 30, 1, 3660, "Length of the observation.", 1, 365),
    Figure("outages", "Outages in that time", "outages", 2, 0, 1000, "Unplanned ones.", 0, 50, whole=True),
    Figure(
        "minutes", "Each lasted", "min", 45, 0.001, 366 * _DAY, "On average, until it worked again.",
        0.1, 1440, log=True,
    ),
    Figure("target_nines", "Target", "nines", 3, 0.1, 8, "3 nines are 99.9 %: 43 minutes a month.", 1, 6),
)  # fmt: skip


def work(values: Values) -> Answer:
    total, lost = values["days"] * _DAY, values["outages"] * values["minutes"]
    if lost > total:
        spent = f"{values['outages']:g} outages of {show_minutes(values['minutes'])}"
        raise ValueError(f"{spent} are more than {show_days(values['days'] * _DAY)}")
    availability, target = uptime_share(total - lost, lost), availability_of(values["target_nines"])
    met, allowed = meets(availability, target), (1 - target) * total
    least, most = lost_interval([values["minutes"]] * int(values["outages"]), total)
    chance = _chance(lost, allowed, values["minutes"])
    bounds = (
        "Without an outage the duration of one is unknown."
        if most is None
        else f"The 95 % interval is {show_availability(1 - most)} to {show_availability(1 - least)}."
    )
    return Answer(
        shown=show_availability(availability),
        verdict=f"{'Keeps' if met else 'Below'} the target of {show_availability(target)}",
        good=met,
        sentences=(
            f"Down for {show_minutes(lost)} where {show_minutes(allowed)} are allowed; at this rate "
            f"{show_minutes(downtime_per_year(availability))} in a year.",
            bounds,
            *(() if chance is None else (_meaning(chance),)),
        ),
        measures={
            "availability": availability,
            "shown": show_availability(availability),
            "target": target,
            "met": met,
            "nines": None if lost == 0 else nines(availability),
            "minutes_lost": lost,
            "minutes_allowed": allowed,
            "minutes_per_year": downtime_per_year(availability),
            "chance": chance,
        },
        drawings=(_bar(lost, allowed),),
        tables=(_by_target(availability, total),),
    )


def _chance(lost: float, allowed: float, minutes: float) -> float | None:
    """Probability of at least so much downtime for a unit that keeps its target; None where it kept it."""
    if not lost > allowed > 0:
        return None
    return float(chance_of_sum(np.array([lost / minutes]), np.array([allowed / minutes]))[0])


def _meaning(chance: float) -> str:
    once = (
        f"A unit that does keep its target has such a time, or a worse one, in {percent(chance)} of all cases"
    )
    return f"{once}: it is a sign." if chance < 0.05 else f"{once}: by itself that is no sign against it."


def _bar(lost: float, allowed: float) -> Bar:
    whole = max(lost, allowed) or 1.0
    return Bar(
        title="Downtime in the time watched",
        parts=((f"down {show_minutes(lost)}", lost / whole),),
        limit=allowed / whole,
        limit_label=f"allowed {show_minutes(allowed)}",
        words=f"Down for {show_minutes(lost)}; allowed are {show_minutes(allowed)}.",
    )


def _by_target(availability: float, total: float) -> Rows:
    rows = tuple(
        (
            show_availability(availability_of(target)),
            show_minutes((1 - availability_of(target)) * total),
            show_minutes(downtime_per_year(availability_of(target))),
            "yes" if meets(availability, availability_of(target)) else "no",
        )
        for target in _TARGETS
    )
    columns = ("Target", "Allowed in the time watched", "Allowed in a year", "Kept")
    return Rows("Requirements that it would meet", columns, rows)


AVAILABILITY = Calculator(
    slug="availability",
    title="Availability",
    question="Nines left by a number of outages, and whether a unit with them is below target or unlucky.",
    formula="time up ÷ (time up + time down)",
    analyzer="availability",
    inputs=INPUTS,
    work=work,
)
