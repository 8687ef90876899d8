"""Panorama as published: bounded look-back majority (Huang et al., OSDI 2018), and its verdict.

Each observer's view of a subject in a context is read from its newest observations backwards: a few that differ from
the newest and the reading stops, the view is unhealthy if the newest says so or healthy ones are no strict
majority. The views of all observers are counted, a tie going to the worse. How contexts make one verdict of
a subject the paper leaves open; here the worst context decides.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import numpy as np

from analyzers.builtin.panorama.analyzer import SLICE
from analyzers.builtin.panorama.observed import Observed
from analyzers.contract import Evidence, Params, Suspect, Verdict, Window, quiet, table, text

_CLEARED = 20


def verdict_of(window: Window, seen: Observed, params: Params, measures: Mapping[str, Any]) -> Verdict:
    limit, ttl = (seen.steps_of(float(params[name])) for name in ("pending_seconds", "ttl_seconds"))
    places = places_of(seen, limit, ttl)
    bad: dict[int, list[Place]] = {}
    for place in places:
        if place.bad:
            bad.setdefault(place.subject, []).append(place)
    evidence = (_table(seen, places, set(bad)), text("Method", _ACCOUNT))
    if not bad:
        return quiet(measures, evidence)
    order = sorted(
        bad, key=lambda subject: (-_share(bad[subject]), -_voices(bad[subject]), seen.components[subject])
    )
    suspects = tuple(_suspect(window, seen, subject, bad[subject], ttl) for subject in order)
    return Verdict("named", suspects, None, measures, evidence)


def _share(places: list[Place]) -> float:
    return max(place.unhealthy / place.views for place in places)


def _voices(places: list[Place]) -> int:
    return sum(place.unhealthy for place in places)


def _suspect(window: Window, seen: Observed, subject: int, places: list[Place], ttl: int) -> Suspect:
    cells = [cell for place in places for cell in place.cells]
    oldest = max(0, seen.steps - ttl)
    steps = np.flatnonzero(seen.unhealthy[cells, oldest:].any(axis=0)) + oldest
    contexts = sorted({seen.contexts[place.context] for place in places})
    step = seen.fold * SLICE
    first = window.start + int(steps[0]) * step if len(steps) else None
    last = min(window.end, window.start + (int(steps[-1]) + 1) * step) if len(steps) else None
    voices = max(places, key=lambda place: (place.unhealthy / place.views, place.unhealthy))
    return Suspect(
        component=seen.components[subject],
        score=None,
        summary=f"{voices.unhealthy} of {voices.views} observers hold {seen.components[subject]} unhealthy, in "
        f"{', '.join(contexts)}.",
        first_failure=first,
        last_failure=None if last is None else max(last, (first or last) + timedelta(0)),
    )


def _table(seen: Observed, places: list[Place], bad: set[int]) -> Evidence:
    def rank(one: Place) -> tuple[bool, float, int, str, int]:
        share = one.unhealthy / one.views
        return not one.bad, -share, -one.unhealthy, seen.components[one.subject], one.context

    order = sorted((place for place in places if place.unhealthy), key=rank)
    shown = [place for place in order if place.bad] + [place for place in order if not place.bad][:_CLEARED]
    rows = tuple(
        (
            seen.components[place.subject],
            seen.contexts[place.context],
            place.unhealthy,
            place.views,
            "unhealthy" if place.bad else "unhealthy elsewhere" if place.subject in bad else "cleared",
        )
        for place in shown
    )
    columns = ("subject", "context", "observers that hold it unhealthy", "observers with a view", "verdict")
    return table("Views of the observers", columns, rows, "The worst context decides about a subject.")


_ACCOUNT = (
    "Bounded look-back majority as in Panorama (Huang et al., OSDI 2018): each observer's newest ten observations of a "
    "context, read backwards until more than two differ from the newest; the majority of observers decides, a tie is "
    "unhealthy. Every observer counts the same, so that many overloaded observers carry the vote. No probability: "
    "the method has none."
)


LOOK_BACK = 10
"""Observations of one observer in one context that are read, as in the authors' code."""
_EXTRA = 2
"""Observations that differ from the newest after which the reading stops."""
_PENDING = 3
"""More pending ones than this, older than their time limit, are a negative view."""

Run = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Place:
    """A subject in a context: how many observers hold it unhealthy, of how many that have a view."""

    subject: int
    context: int
    unhealthy: int
    views: int
    cells: tuple[int, ...]

    @property
    def bad(self) -> bool:
        return 2 * self.unhealthy >= self.views > 0 and self.unhealthy > 0


def view(runs: list[Run]) -> bool | None:
    """Whether an observer holds a subject unhealthy in a context; None without a view.

    `runs` are its observations, newest first, equal neighbours counted together.
    """
    counts: Counter[str] = Counter()
    current, others, left = "", _EXTRA, LOOK_BACK
    for status, times in runs:
        if status == "pending" and current == "healthy":
            continue
        current = current or status
        read = min(times, left) if status == current else min(times, left, others)
        counts[status] += read
        left -= read
        others -= read if status != current else 0
        if left <= 0 or (status != current and read < times):
            break
    if not counts:
        return None
    if counts["pending"] > _PENDING:
        return True
    if current == "pending":
        return None
    return current == "unhealthy" or 2 * counts["healthy"] <= counts.total()


def runs_of(seen: Observed, cell: int, oldest: int, limit: int) -> list[Run]:
    """The observations of a cell from step `oldest` on, newest first.

    Within a step the order is not known: what was answered is taken as newer than what was asked, and of
    answers those that are more, the worse of equals. Pending ones younger than `limit` steps say nothing yet.
    """
    found: list[Run] = []
    active = seen.healthy[cell] + seen.unhealthy[cell] + seen.pending[cell]
    for step in np.flatnonzero(active[oldest:])[::-1].tolist():
        at = oldest + step
        healthy, unhealthy = int(seen.healthy[cell, at]), int(seen.unhealthy[cell, at])
        answers = [("unhealthy", unhealthy), ("healthy", healthy)]
        answers.sort(key=lambda one: -one[1])
        pending = int(seen.pending[cell, at]) if at < seen.steps - limit else 0
        found += [run for run in (*answers, ("pending", pending)) if run[1]]
    return found


def places_of(seen: Observed, limit: int, ttl: int) -> list[Place]:
    """Every subject and context with the views of its observers at the end; older than `ttl` steps is forgotten."""
    oldest = max(0, seen.steps - ttl)
    view_of = [view(runs_of(seen, cell, oldest, limit)) for cell in range(seen.cells)]
    cells: list[list[int]] = [[] for _ in seen.place_subject]
    for cell, place in enumerate(seen.place.tolist()):
        cells[place].append(cell)
    found = []
    for place, mine in enumerate(cells):
        views = [view_of[cell] for cell in mine if view_of[cell] is not None]
        subject, context = int(seen.place_subject[place]), int(seen.place_context[place])
        found.append(Place(subject, context, sum(map(bool, views)), len(views), tuple(mine)))
    return found
