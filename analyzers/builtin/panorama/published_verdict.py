"""The published method's verdict in tables and sentences."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import numpy as np

from analyzers.builtin.panorama.observed import Observed
from analyzers.builtin.panorama.published import Place, places_of
from analyzers.builtin.panorama.reductions import SLICE
from analyzers.contract import Evidence, Params, Suspect, Verdict, Window, quiet, table, text

_CLEARED = 20


def verdict_of(window: Window, seen: Observed, params: Params, measures: Mapping[str, Any]) -> Verdict:
    limit, ttl = (seen.steps_of(float(params[name])) for name in ("pending_seconds", "ttl_seconds"))
    places = places_of(seen, limit, ttl)
    bad: dict[int, list[Place]] = {}
    for place in places:
        if place.bad:
            bad.setdefault(place.subject, []).append(place)
    evidence = (_table(seen, places, set(bad)), text("How this was concluded", _ACCOUNT))
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
    kept = [place for place in order if place.bad] + [place for place in order if not place.bad][:_CLEARED]
    rows = tuple(
        (
            seen.components[place.subject],
            seen.contexts[place.context],
            place.unhealthy,
            place.views,
            "unhealthy" if place.bad else "unhealthy elsewhere" if place.subject in bad else "cleared",
        )
        for place in kept
    )
    columns = ("subject", "context", "observers that hold it unhealthy", "observers with a view", "verdict")
    return table("Views of the observers", columns, rows, "The worst context decides about a subject.")


_ACCOUNT = (
    "Bounded look-back majority after Panorama (Huang et al., OSDI 2018): each observer's newest ten observations of a "
    "context, read backwards until more than two differ from the newest; the majority of observers decides, a tie is "
    "unhealthy. Every observer counts the same, so that many overloaded observers carry the vote. No probability: "
    "the method has none."
)
