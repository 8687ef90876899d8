"""The first steps with an empty Dossier: which are done, which one is next, what the last one makes. Pure."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import date
from typing import Any, Final

STEPS: Final = (
    ("team", "Create your team"),
    ("sender", "Connect an alert source"),
    ("sample", "Try an analyzer"),
    ("reach", "Add a contact method"),
    ("call", "Get paged"),
)
NAMES: Final = tuple(name for name, _ in STEPS)


@dataclass(frozen=True, slots=True)
class Step:
    """One of them; `open` is the one that the page unfolds: the first that is neither done nor skipped."""

    name: str
    title: str
    done: bool
    skipped: bool
    open: bool


def steps(done: Collection[str], skipped: Collection[str], chosen: str = "") -> list[Step]:
    """All of them in order. `chosen` is unfolded in place of the next one, whatever its state.

    What is done is not skipped, whenever it was done.
    """
    left = [name for name in NAMES if name not in done and name not in skipped]
    unfolded = chosen if chosen in NAMES else (left[0] if left else "")
    return [
        Step(name, title, name in done, name in skipped and name not in done, name == unfolded)
        for name, title in STEPS
    ]


def slug_of(name: str, taken: Collection[str]) -> str:
    """A short name made of a name, which nothing else has: letters, digits and hyphens, at most 60 of them."""
    plain = "".join(one if one.isascii() and one.isalnum() else "-" for one in name.lower())
    base = "-".join(part for part in plain.split("-") if part)[:50] or "team"
    found, n = base, 2
    while found in taken:
        found, n = f"{base}-{n}", n + 1
    return found


def called_alone(
    team: str, name: str, person: str, day: date, zone: str
) -> tuple[dict[str, Any], dict[str, Any]]:
    """A schedule in which one person takes every turn from `day` on, by the clocks of `zone`, and the policy that calls
    it for incidents of the team, after five minutes all of the team; both in the form of the API."""
    layer = {"name": "primary", "people": [person], "start": f"{day}T00:00", "turn": "1w"}
    calls = [{"after": 0, "actions": [{"schedule": team}]}, {"after": 300, "actions": [{"team": team}]}]
    named = {"slug": team, "name": f"{name} on call", "team": team}
    return {**named, "time_zone": zone, "layers": [layer]}, {**named, "steps": calls}
