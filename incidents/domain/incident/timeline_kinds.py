"""What kind of thing a line of the timeline tells of, so that people can look at one kind alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

TimelineKind = Literal["people", "analyzers", "alerts", "routing", "notifications"]
KINDS: Final[tuple[TimelineKind, ...]] = get_args(TimelineKind)

_NAMES: Final[Mapping[TimelineKind, str]] = {
    "analyzers": "finding_joined finding_recorded no_longer_blamed opinion_changed cause_missed",
    "alerts": "joined alerts_joined alerts_rested alerts_left symptoms_joined explained planned_work_noted",
    "routing": "opened handed_over accepted bounced hand_over_undone merged absorbed split separated split_off"
    " alerts_split_off",
    "notifications": "notified escalation_started escalated escalation_exhausted nobody_called",
}
_ALWAYS: Final[Mapping[str, TimelineKind]] = {
    f"incident.{name}": kind for kind, names in _NAMES.items() for name in names.split()
}
_BY_ITSELF: Final[Mapping[str, TimelineKind]] = {
    "incident.evidence_attached": "analyzers",
    "incident.severity_set": "alerts",
    "incident.resolved": "alerts",
    "incident.unacknowledged": "notifications",
}
"""What Dossier does by itself; the same by a person is what people did."""


def kind_of(type_: str, actor: str) -> TimelineKind:
    """The kind of an event: by its type, else by who did it."""
    if type_ in _ALWAYS:
        return _ALWAYS[type_]
    return _BY_ITSELF.get(type_, "routing") if actor.startswith("system:") else "people"
