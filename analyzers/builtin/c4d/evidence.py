"""Evidence of a c4d verdict: what is named, the delay matrix as a heat map, lateness by rank, and the stall."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from analyzers.builtin.c4d.findings import Finding, Judged, component
from analyzers.builtin.c4d.places import nodes_of
from analyzers.builtin.text import hundredths
from analyzers.builtin.vega import SCHEMA
from analyzers.contract import Evidence, Window, chart, table, text

MOST_ROWS, MOST_RANKS = 20, 48
_WHAT = {
    "hang": "never launched",
    "hang_transfer": "launched and stuck",
    "mismatch": "software out of step",
    "delay": "slow communication",
    "arrival": "slow computation",
}


def pieces(window: Window, jobs: Sequence[Judged]) -> tuple[Evidence, ...]:
    """The pieces of all jobs, in order; nothing for jobs about which there is nothing to show."""
    del window
    found: list[Evidence] = []
    several = len(jobs) > 1
    rows = [_row(job, one, several) for job in jobs for one in job.findings][:MOST_ROWS]
    if rows:
        columns = ("component", "node", "what", "job", "summary", "could also be")
        found.append(table("Ranks and connections at fault", columns, tuple(rows)))
    for job in jobs:
        found += _of_job(job)
    return tuple(found)


def _row(job: Judged, one: Finding, several: bool) -> tuple[str, ...]:
    alike = ", ".join(component(place, one.job, several) for place in one.alike[:MOST_ROWS])
    return (
        component(one.place, one.job, several),
        ", ".join(nodes_of(job.records, one.place)) or "–",
        _WHAT[one.indicator],
        job.records.job,
        one.summary,
        alike or "–",
    )


def _of_job(job: Judged) -> list[Evidence]:
    found: list[Evidence] = []
    hang = job.hang
    if hang is not None and hang.stall > 1:
        found.append(
            text(
                f"Stall of job {job.records.job}",
                f"{hang.blocked} of {hang.ranks} ranks wait in an operation; three quarters of the ranks have done "
                f"nothing for {hang.stall:.1f} s. A stall of up to {hang.usual:.1f} s is usual here.",
            )
        )
    if job.delays is not None and job.delays.found:
        found.append(_heat_map(job))
    if job.late:
        found.append(_late(job))
    return found


def _heat_map(job: Judged) -> Evidence:
    delays = job.delays
    assert delays is not None
    hot = sorted({rank for one in delays.found for pair in one.pairs for rank in pair})
    seen = np.flatnonzero(
        (~np.isnan(delays.delay)).any(axis=0) | (~np.isnan(delays.delay)).any(axis=1)
    ).tolist()
    named = [rank for one in delays.found for rank in one.place.ranks]
    ranks = sorted(
        dict.fromkeys([*named, *hot, *seen]), key=lambda one: (one not in named, one not in hot, one)
    )
    ranks = sorted(ranks[:MOST_RANKS])
    values = [
        {"from": src, "to": dst, "delay": round(float(delays.delay[src, dst]), 3)}
        for src in ranks
        for dst in ranks
        if not np.isnan(delays.delay[src, dst])
    ]
    spec = {
        "$schema": SCHEMA,
        "width": "container",
        "height": {"step": 12},
        "data": {"values": values},
        "mark": {"type": "rect", "tooltip": {"content": "data"}},
        "encoding": {
            "x": {"field": "to", "type": "ordinal", "title": "to rank"},
            "y": {"field": "from", "type": "ordinal", "title": "from rank"},
            "color": {
                "field": "delay",
                "type": "quantitative",
                "title": "times the usual",
                "scale": {"scheme": "orangered", "domainMin": 1},
            },
        },
    }
    note = (
        f"Median of the last {delays.span} operations over the usual for size and class; single connections count from "
        f"{delays.cut:.2f} on."
    )
    return chart(f"Delay between ranks of job {job.records.job}", spec, note)


def _late(job: Judged) -> Evidence:
    rows = tuple(
        (
            f"rank/{one.rank}",
            one.communicator,
            hundredths(one.share),
            None if np.isnan(one.usual) else hundredths(one.usual),
            f"{one.blocks} of {one.of}",
        )
        for one in job.late[:MOST_ROWS]
    )
    columns = ("rank", "communicator", "others wait (% of the time)", "before (%)", "blocks of operations")
    note = "The rank that is in an operation for the shortest time arrived last; the clocks of ranks are not compared."
    return table(f"Late ranks of job {job.records.job}", columns, rows, note)
