"""Suspects of a pingmesh verdict: names, probabilities, times and sentences.

The score of a suspect is how often one with that much evidence was at fault in simulations. `SCORES` was made by
`python -m tests.benchmarks.pingmesh --calibrate --trials 60` on tuning seeds (below `FIRST_REPORTING_SEED`): 1,440
windows of 144 and 600 servers with faults of every kind, some in their first minutes and some two at once, most with
a benign event beside them, and benign events alone; the bar lowered by 3 nats, so that doubtful suspects are seen
too. Each pair is the middle of a step of evidence over the bar at `alpha` 1e-3, in nats, and the share of suspects in
that step that were truly at fault (made monotone). Wrong far above the bar were servers that topology puts into the
wrong pod. Like every such figure it holds for a world like the simulated one.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from datetime import datetime

import numpy as np
from numpy.typing import NDArray

from analyzers.builtin.pingmesh.analyzer import SLICE
from analyzers.builtin.pingmesh.black_holes import BlackHole
from analyzers.builtin.pingmesh.observed import Observed
from analyzers.builtin.pingmesh.patterns import Blamed, Found
from analyzers.builtin.stats.probability import probability_at, wilson
from analyzers.builtin.text import count, listed, percent
from analyzers.contract import Estimate, Suspect, Window

Ints = NDArray[np.int64]

SURE, SURE_MINUTES = 0.97, 5
"""One window is enough with such a score, and if the fault was seen over so many minutes."""

LARGEST_FIRST = (
    "spine",
    "podset_down",
    "podset_failure",
    "black_hole_spine",
    "black_hole_leaf",
    "pod_down",
    "pod_failure",
    "black_hole",
    "server_failure",
)
SMALL = ("pod_failure", "server_failure")
"""Kinds that larger faults beside them may hide in."""

WHAT = {
    "podset_down": "podset down",
    "pod_down": "pod down",
    "podset_failure": "fault inside a podset (Leaf layer)",
    "pod_failure": "fault of a ToR",
    "spine": "fault of the Spine layer",
    "server_failure": "one server",
    "black_hole": "black hole in a ToR",
    "black_hole_leaf": "black hole above the ToRs of a podset",
    "black_hole_spine": "black hole above the podsets",
}
PHRASES = {
    "dropped": "drops a packet of {} of the probes that it carries",
    "slow": "answers {} of the probes that it carries too late",
    "silent": "has {} of its servers silent",
    "black_hole": "breaks {} of the pairs of servers that it carries",
}


@dataclass(frozen=True, slots=True, eq=False)
class Named:
    """A culprit with its component, what is alike, its minutes and its score."""

    component: str
    alike: tuple[str, ...]
    blamed: Blamed
    minutes: Minutes
    score: float
    hole: BlackHole | None = None


def named(seen: Observed, found: Found, holes: list[BlackHole]) -> list[Named]:
    """Each component once, the most probable first."""
    out: dict[str, Named] = {}
    peers = _unblamed(seen, found)
    for blamed, hole in (*((one, None) for one in found.blamed), *((one.blamed, one) for one in holes)):
        component, alike = _names(seen, blamed)
        minutes = minutes_of(seen, blamed.measure, blamed.members, peers if blamed.kind in SMALL else None)
        score = probability(blamed.adjusted)
        one = Named(component, alike, blamed, minutes, score, hole)
        out.setdefault(component, one)
    return sorted(
        out.values(),
        key=lambda one: (
            -one.score,
            LARGEST_FIRST.index(one.blamed.kind),
            one.blamed.adjusted,
            -one.blamed.hits,
        ),
    )


def _unblamed(seen: Observed, found: Found) -> Ints:
    unblamed = np.ones(len(seen.servers), dtype=bool)
    for one in found.blamed:
        if one.kind != "spine":
            unblamed[one.members] = False
    return np.flatnonzero(unblamed)


def _names(seen: Observed, blamed: Blamed) -> tuple[str, tuple[str, ...]]:
    """The component, and those that the data cannot tell from it: the pods or podsets of a pair of two, a pod that is
    the only one of its podset.
    """
    where, place = seen.places, blamed.place
    if blamed.kind == "server_failure":
        return seen.servers[place], ()
    if blamed.kind in ("spine", "black_hole_spine"):
        first, *others = where.spines[place]
        podsets = tuple(
            name for name, dc in zip(where.podsets, where.dc, strict=True) if dc % len(where.spines) == place
        )
        return first, tuple(sorted({*others, *(podsets if len(podsets) == 2 else ())}))
    if blamed.kind in ("podset_down", "podset_failure", "black_hole_leaf"):
        pods = [name for name, one in zip(where.pods, where.podset, strict=True) if one == place]
        return where.podsets[place], tuple(pods) if len(pods) == 1 else ()
    podset = int(where.podset[place])
    alone = podset >= 0 and int((where.podset == podset).sum()) == 1
    return where.pods[place], (where.podsets[podset],) if alone else ()


def suspect(window: Window, seen: Observed, one: Named, drop_limit: float, p99_us: float) -> Suspect:
    blamed = one.blamed
    first, last = span(window, one)
    low, high = wilson(int(blamed.hits), int(blamed.tries))
    sure = (
        one.score >= SURE
        and not one.alike
        and blamed.kind != "server_failure"
        and one.minutes.lasted(min(SURE_MINUTES, seen.minutes))
    )
    return Suspect(
        component=one.component,
        score=one.score,
        summary=sentence(one, drop_limit, p99_us),
        p_value=blamed.p,
        q_value=blamed.adjusted,
        estimate=Estimate(blamed.hits / blamed.tries, low, high, PHRASES[blamed.measure]),
        ambiguous_with=one.alike,
        sure=sure,
        first_failure=first,
        last_failure=last,
        phrase=_title(one),
    )


def span(window: Window, one: Named) -> tuple[datetime, datetime]:
    """The start of the first minute that shows it, and the end of the last."""
    first, last = window.start + one.minutes.first * SLICE, window.start + (one.minutes.last + 1) * SLICE
    return first, min(last, window.end)


def sentence(one: Named, drop_limit: float, p99_us: float) -> str:
    return _summary(one, drop_limit, p99_us) + _alike(one)


def _summary(one: Named, drop_limit: float, p99_us: float) -> str:
    blamed, name, hole = one.blamed, one.component, one.hole
    if hole is not None:
        return _black_hole(one, hole)
    if blamed.measure == "silent":
        return (
            f"{name} is down: {count(blamed.hits)} of its {count(blamed.tries)} servers neither answer probes nor "
            "have theirs answered"
        )
    share = percent(blamed.hits / blamed.tries)
    worse = (
        f"{share} of {count(blamed.tries)} answered probes lost a packet on the way (limit {percent(drop_limit)})"
        if blamed.measure == "dropped"
        else f"{share} of {count(blamed.tries)} answers took longer than {p99_us / 1000:g} ms (limit 1 %)"
    )
    return {
        "spine": f"{name} is at fault: between podsets {worse}, while inside podsets all is well",
        "podset_failure": f"{name} has a fault at its Leaf layer: to, from and within it {worse}, elsewhere not",
        "pod_failure": f"{name} is at fault: to and from nearly all of its servers {worse}",
        "server_failure": f"{name} is at fault itself: to and from it {worse}, its neighbours are well",
    }[blamed.kind]


_MATCHED = {1: "addresses", 2: "addresses and ports"}


def _black_hole(one: Named, hole: BlackHole) -> str:
    kind = "every probe" if hole.type == 1 else "some probes, including their repeated packets"
    symptom = (
        f"{count(one.blamed.hits)} of {count(one.blamed.tries)} pairs of living servers lose {kind}; "
        f"{hole.servers} of {hole.among} servers have such peers"
    )
    if one.blamed.kind == "black_hole":
        return f"{one.component} drops all packets between certain {_MATCHED[hole.type]} (a black hole): {symptom}"
    above = "its Leaf layer" if one.blamed.kind == "black_hole_leaf" else "this layer"
    which = _MATCHED[hole.type]
    return f"{one.component} has a black hole in {above}, not in one ToR, between certain {which}: {symptom}"


def _title(one: Named) -> str:
    """Title of a fault that a share alone does not state, else nothing."""
    if one.blamed.measure == "silent":
        return f"is down: {count(one.blamed.hits)} of its {count(one.blamed.tries)} servers are silent"
    if one.hole is None:
        return ""
    where = {"black_hole_leaf": " in its Leaf layer", "black_hole_spine": " in its switches"}
    place = where.get(one.blamed.kind, "")
    return f"has a black hole{place}: drops all packets between certain {_MATCHED[one.hole.type]}"


def _alike(one: Named) -> str:
    if not one.alike:
        return "."
    return f". These probes do not separate it from {listed(one.alike)}."


Floats = NDArray[np.float64]

PEAK_MINUTES = 3
SHARE_OF_PEAK = 0.5


@dataclass(frozen=True, slots=True)
class Minutes:
    """The first and the last minute (numbers within the window) that show the fault, and in how many minutes what
    happened lies: `spread` is (sum e)^2 / sum e^2, 1 if all was in one minute.
    """

    first: int
    last: int
    spread: float

    def lasted(self, least: float) -> bool:
        """Whether it was spread over so many minutes, give or take half of one."""
        return self.spread >= least - 0.5


def minutes_of(seen: Observed, measure: str, members: Ints, peers: Ints | None = None) -> Minutes:
    """By what the members sent and had answered late, or for what is silent or lost: what was lost to or from them.

    `peers` are servers like them that nothing is said against: what these see on average is taken off, because it is
    the doing of others (a podset with a storm makes every other one late at times).
    """
    if measure in ("slow", "dropped"):
        by_server = seen.quick[:, :, 1 if measure == "slow" else 2]
        events = by_server[members].sum(axis=0)
        if peers is not None and len(peers):
            events = np.maximum(0.0, events - len(members) * by_server[peers].mean(axis=0))
    else:
        pair, minute, lost = seen.lost_at
        inside = np.zeros(len(seen.servers), dtype=bool)
        inside[members] = True
        touched = inside[seen.src[pair]] | inside[seen.dst[pair]]
        events = np.bincount(minute[touched], lost[touched], minlength=seen.minutes)
    return spread_of(events)


def spread_of(events: Floats) -> Minutes:
    """From the number of events in each minute."""
    total = float(events.sum())
    if total == 0:
        return Minutes(0, len(events) - 1, 0.0)
    peak = float(np.sort(events)[-PEAK_MINUTES:].mean())
    struck = np.flatnonzero(events >= max(SHARE_OF_PEAK * peak, 1e-9))
    return Minutes(int(struck[0]), int(struck[-1]), total**2 / float((events**2).sum()))


SCORES: tuple[tuple[float, float], ...] = (
    (-2.5, 0.167),
    (-1.5, 0.583),
    (2.25, 0.936),
    (25.0, 0.992),
)

BAR = 1e-3
"""The level from which evidence is counted, whatever `alpha` is."""


def probability(adjusted: float) -> float:
    """The probability that a suspect is at fault, given its p value (corrected for the number of tests)."""
    return probability_at(SCORES, surplus(adjusted))


def surplus(adjusted: float) -> float:
    """Evidence above the bar, in nats."""
    return math.log(BAR) - math.log(max(adjusted, 1e-300))
