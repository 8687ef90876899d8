"""Findings in the jobs of a window, in one form: place, indicator, probability, times and sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from analyzers.builtin.c4d.calibration import probability
from analyzers.builtin.c4d.hangs import LOST, Culprit, Hang, hang_of, lost_share
from analyzers.builtin.c4d.late_ranks import Late, late_ranks
from analyzers.builtin.c4d.observed import Records
from analyzers.builtin.c4d.places import Pattern, Place
from analyzers.builtin.c4d.slow_transfers import Delays, delays_of
from analyzers.builtin.text import percent, so_many
from analyzers.contract import Params

SURE_STALL = 30.0
"""Seconds of a stall from which one window is enough."""
SURE_EXCESS, SURE_LATE = 1.8, 0.15
"""Delay over the usual, and lateness as a share of the time, from which one window is enough."""

INDICATORS = {
    "hang": "operation not launched",
    "hang_transfer": "transfer without progress",
    "mismatch": "operation mismatch",
    "delay": "transfer delay",
    "arrival": "late arrival",
}


@dataclass(frozen=True, slots=True)
class Finding:
    """A place at fault in a job. `says` ends a sentence that begins with the component; `summary` is a whole one;
    `above` is how many times its bar the indicator is."""

    job: str
    place: Place
    alike: tuple[Place, ...]
    indicator: str
    score: float
    since: float
    phrase: str
    summary: str
    sure: bool
    above: float


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """One job: its records, the three detectors' results, and what they name."""

    records: Records
    hang: Hang | None
    delays: Delays | None
    late: tuple[Late, ...]
    findings: tuple[Finding, ...]


def judge_job(records: Records, now: float, params: Params) -> Judged:
    hang = hang_of(records, now, float(params["hang_seconds"]))
    delays = delays_of(records, float(params["least_delay"]), float(params["delay_mads"]))
    late = late_ranks(records, float(params["least_late"]), float(params["late_mads"]))
    found: list[Finding] = []
    if hang is not None:
        found += [_of_hang(records, hang, one, now) for one in hang.culprits]
    if delays is not None:
        found += [_of_delay(records, delays, one, float(params["least_delay"])) for one in delays.found]
    hung = {one.place.rank for one in found if one.indicator == "hang"}
    lossy = bool(late) and lost_share(records, np.flatnonzero(~records.is_transfer)) >= LOST
    least = float(params["least_late"])
    found += [_of_late(records, one, least, lossy) for one in late if one.rank not in hung]
    return Judged(records, hang, delays, late, tuple(found))


def component(place: Place, job: str, several: bool) -> str:
    """The name of a place: `rank/7`; with several jobs in a window `rank/JOB:7`."""
    kind, _, name = place.component.partition("/")
    return f"{kind}/{job}:{name}" if several else f"{kind}/{name}"


def _maybe(alike: Sequence[Place]) -> str:
    if not alike:
        return "."
    names = [one.component for one in alike]
    shown = ", ".join(names[:3]) + (f" or {len(names) - 3} others" if len(names) > 3 else "")
    return f". It could also be {shown}: the records cannot tell them apart."


def _of_hang(records: Records, hang: Hang, one: Culprit, now: float) -> Finding:
    # A dump that was made because the job hangs ends with the last record: it does not say for how long.
    lasts = f" for {hang.stall:.0f} s" if hang.stall >= 0.5 else " at the end of the records"
    where = f"{one.op}" + (f" {one.seq} of communicator {one.communicator}" if one.communicator else "")
    name = one.place.component
    waiting = so_many(one.waiting, "rank")
    indicator = "hang"
    if one.nature == "launch":
        phrase = f"never launched {where}; {waiting} wait for it"
        wait = "have waited for it" if hang.stall >= 0.5 else "wait for it"
        summary = f"{name} did not launch {where}, and {waiting} of job {records.job} {wait}{lasts}"
    elif one.nature == "transfer":
        indicator = "hang_transfer"
        phrase = f"makes no progress in {where} that all ranks launched"
        summary = f"All ranks launched {where}; {name} makes no progress, and job {records.job} has been stuck{lasts}"
    elif one.nature == "mismatch":
        indicator = "mismatch"
        phrase = f"launched {one.other_op} where others launched {where} (software)"
        summary = (
            f"{name} launched {one.other_op} where the other ranks of job {records.job} launched {where}: its code is "
            f"out of step, no hardware is at fault; the job has been stuck{lasts}"
        )
    else:
        indicator = "mismatch"
        phrase = "waits in a ring with other ranks (software)"
        summary = (
            f"Ranks of job {records.job} have waited for each other in a ring of communicators{lasts}: they launch "
            "operations in different orders, no hardware is at fault"
        )
    above = hang.stall / max(hang.usual, 1.0)
    score = probability(indicator, above, len(one.alike), lost=hang.is_lossy)
    sure = hang.stall >= SURE_STALL and not one.alike and not hang.is_lossy
    since = now - hang.stall
    return Finding(
        records.job,
        one.place,
        one.alike,
        indicator,
        score,
        since,
        phrase,
        summary + _maybe(one.alike),
        sure,
        above,
    )


_SIDE = {
    "rank": "sends and receives slowly",
    "rank_tx": "sends slowly",
    "rank_rx": "receives slowly",
    "channel": "is slow",
}


def _of_delay(records: Records, delays: Delays, one: Pattern, least: float) -> Finding:
    excess = delays.excess(one)
    pairs = so_many(len(one.pairs), "connection")
    phrase = f"{_SIDE[one.place.side]}: its transfers take {excess:.2g} times as long as usual"
    summary = (
        f"{one.place.component} of job {records.job} {_SIDE[one.place.side]}: transfers on {pairs} take "
        f"{excess:.2g} times as long as others of their size and class, over the last {delays.span} operations"
    )
    above = (excess - 1) / least
    score = probability("delay", above, len(one.alike))
    sure = excess >= SURE_EXCESS and not one.alike
    return Finding(
        records.job,
        one.place,
        one.alike,
        "delay",
        score,
        delays.since,
        phrase,
        summary + _maybe(one.alike),
        sure,
        above,
    )


def _of_late(records: Records, one: Late, least: float, lost: bool) -> Finding:
    place = Place("rank", one.rank)
    phrase = f"arrives last in collectives: the others wait {percent(one.share)} of the time for it"
    summary = (
        f"{place.component} of job {records.job} computes slowly: it arrives last, and the other "
        f"{so_many(one.members - 1, 'rank')} of communicator {one.communicator} wait {percent(one.share)} of the time "
        "for it."
    )
    sure = one.share >= SURE_LATE and one.members > 3
    above = one.share / least
    score = probability("arrival", above, lost=lost)
    return Finding(records.job, place, (), "arrival", score, one.since, phrase, summary, sure, above)
