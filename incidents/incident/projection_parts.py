"""Read models that other drawers keep beside an incident's own; projected and rebuilt with it, in its transaction."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from django.db import models

from incidents.domain.incident.state import Incident
from ingest.queries import Event


@dataclass(frozen=True, slots=True)
class Change:
    """What events made of one incident: `before` is None where they are all that it has."""

    before: Incident | None
    events: Sequence[Event]
    after: Incident


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of `model` (which have `incident` and `version`) follow from events alone.

    `project` gets what is new of several incidents, each once, and writes them together.
    """

    model: type[models.Model]
    project: Callable[[Sequence[Change]], None]


_parts: dict[str, Part] = {}


def register_part(part: Part) -> None:
    """When Django starts. A model has one part."""
    if _parts.setdefault(part.model._meta.label, part) != part:
        raise ValueError(f"{part.model._meta.label} is registered twice, differently")


def parts() -> tuple[Part, ...]:
    return tuple(_parts.values())
