"""Who asks for a command, and how the incident stood when they did."""

from __future__ import annotations

import re

from incidents.domain.incident.commands import Command
from incidents.domain.incident.conflicts import Happened, contending
from incidents.domain.values import InvalidValueError
from incidents.incident.models import TimelineEntry
from ingest.queries import Context

_POSITION = re.compile(r"[0-9a-f]{36}")


class ExpectedContext(Context, frozen=True):
    """`seen` is the `position` of the incident that the asker looked at; None: it is done however it stands."""

    seen: str | None = None


def seen_from(field: str, text: str) -> str | None:
    """A position as an ETag or a form carries it; `*` and nothing say that it does not matter. Raises
    InvalidValueError."""
    position = text.strip().removeprefix("W/").strip('"')
    if position in ("", "*"):
        return None
    if not _POSITION.fullmatch(position):
        raise InvalidValueError(field, "must be an ETag of the incident")
    return position


def changes_since(incident_id: str, command: Command, context: Context) -> tuple[Happened, ...]:
    """What contends with the command and happened after what the asker has seen, oldest first."""
    seen, types = getattr(context, "seen", None), contending(command)
    if seen is None or not types:
        return ()
    newer = TimelineEntry.objects.filter(incident__pk=incident_id, position__gt=seen, type__in=types)
    return tuple(
        Happened(one.type, one.last_at, one.actor, one.text, one.position)
        for one in newer.order_by("version")
    )
