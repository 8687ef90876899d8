"""The pages that configure Dossier, in groups, for the index and the navigation beside them. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Section:
    """A page of settings: the name of its address, its title, and what one does there."""

    name: str
    title: str
    does: str
    staff: bool = False
    """Whether it is for staff alone, also to read."""
    within: frozenset[str] = field(default_factory=frozenset)
    """Names of the addresses that are reached through it."""


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    sections: tuple[Section, ...]


GROUPS: Final = (
    Group(
        "Who is called",
        (
            Section(
                "notifications", "How Dossier reaches you", "Your contact methods, rules and quiet hours."
            ),
            Section(
                "on_call_schedules",
                "On-call schedules",
                "Who takes turns, at which hours; holidays and who is away.",
                within=frozenset({"on_call_schedule_new", "on_call_schedule_edit", "on_call_calendar"}),
            ),
            Section(
                "policies",
                "Escalation policies",
                "Who is called for an incident that nobody answers, and after how long.",
            ),
            Section("channels", "Channels", "Rooms, numbers and programs that teams share.", staff=True),
        ),
    ),
    Group(
        "Where incidents go",
        (
            Section("teams", "Teams", "Who works on incidents, and who gets what no rule gives away."),
            Section(
                "routes",
                "Routes",
                "Which incident goes to which team, and which alerts share one; tried before they count.",
                within=frozenset({"route_act"}),
            ),
            Section(
                "services",
                "Services",
                "What teams offer, the components that belong to it, and what fails with one.",
            ),
        ),
    ),
    Group(
        "What comes in",
        (
            Section(
                "integrations",
                "Integrations",
                "Connect what sends alerts and telemetry; keys, mappings and what was refused.",
                within=frozenset({"integration", "integration_mapping"}),
            ),
            Section("silences", "Silences", "Alerts that call nobody for a time, and those held back now."),
            Section("maintenance", "Maintenance", "Planned work, during which its alerts call nobody."),
            Section("inhibitions", "Inhibition", "Which alerts mute others while they fire."),
        ),
    ),
    Group(
        "What goes out",
        (
            Section(
                "webhooks",
                "Webhooks",
                "Which programs of yours are told of incidents, and how they do.",
                staff=True,
            ),
        ),
    ),
    Group(
        "Administration",
        (
            Section("people", "People", "Who may sign in, who is in which team, and what they may do there."),
            Section("audit", "Audit", "Who changed what, and what it was before.", staff=True),
        ),
    ),
)


def groups_for(*, staff: bool) -> Sequence[Group]:
    """What somebody may open; groups that would be empty are left out."""
    kept = (
        Group(one.title, tuple(section for section in one.sections if staff or not section.staff))
        for one in GROUPS
    )
    return [one for one in kept if one.sections]


def section_of(address: str) -> str:
    """The section that the address of a page belongs to, by their names; empty where none does."""
    for group in GROUPS:
        for section in group.sections:
            if address == section.name or address in section.within:
                return section.name
    return ""
