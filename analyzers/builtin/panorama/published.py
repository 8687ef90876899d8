"""The verdict as published: bounded look-back majority (Huang et al., OSDI 2018).

Each observer's view of a subject in a context is read from its newest observations backwards: a few that differ from
the newest and the reading stops, the view is unhealthy if the newest says so or healthy ones are no strict
majority. The views of all observers are counted, a tie going to the worse. How contexts make one verdict of
a subject the paper leaves open; here the worst context decides.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from analyzers.builtin.panorama.observed import Observed

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
    held = [view(runs_of(seen, cell, oldest, limit)) for cell in range(seen.cells)]
    cells: list[list[int]] = [[] for _ in seen.place_subject]
    for cell, place in enumerate(seen.place.tolist()):
        cells[place].append(cell)
    found = []
    for place, mine in enumerate(cells):
        views = [held[cell] for cell in mine if held[cell] is not None]
        subject, context = int(seen.place_subject[place]), int(seen.place_context[place])
        found.append(Place(subject, context, sum(map(bool, views)), len(views), tuple(mine)))
    return found
