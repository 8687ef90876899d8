"""What kind of thing a line of the timeline tells of, so that people can look at one kind alone. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, Literal, get_args

TimelineKind = Literal["people", "analyzers", "alerts", "routing", "notifications"]
KINDS: Final[tuple[TimelineKind, ...]] = get_args(TimelineKind)

_NAMES: Final[Mapping[TimelineKind, str]] = {
    "analyzers": "finding_joined finding_recorded finding_cleared opinion_changed analyzer_missed_cause",
    "alerts": "report_joined alerts_joined alerts_resolved alerts_removed symptoms_joined linked_to_cause "
    "maintenance_noted",
    "routing": "opened reassigned reassignment_accepted reassignment_rejected reassignment_undone merged "
    "merge_received unmerged merge_undone split_from"
    " alerts_moved",
    "notifications": "notified escalation_started escalated escalation_exhausted escalation_skipped",
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
