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
        "Paging",
        (
            Section("notifications", "Notifications", "Your contact methods, rules and quiet hours."),
            Section(
                "on_call_schedules",
                "On-call schedules",
                "Rotations, restricted hours, holidays and absences.",
                within=frozenset({"on_call_schedule_new", "on_call_schedule_edit", "on_call_calendar"}),
            ),
            Section(
                "policies",
                "Escalation policies",
                "Recipients of unacknowledged incidents, in order and with delays.",
            ),
            Section("channels", "Channels", "Shared chat rooms, phone numbers and endpoints.", staff=True),
        ),
    ),
    Group(
        "Routing",
        (
            Section("teams", "Teams", "Teams that work on incidents, and the default team."),
            Section(
                "routes",
                "Routes",
                "Rules for team, severity, policy and grouping, with a preview.",
                within=frozenset({"route_act"}),
            ),
            Section(
                "services",
                "Services",
                "Services, their components and dependencies.",
            ),
        ),
    ),
    Group(
        "Incoming",
        (
            Section(
                "integrations",
                "Integrations",
                "Sources of alerts and telemetry: keys, mappings, rejections.",
                within=frozenset({"integration", "integration_mapping"}),
            ),
            Section(
                "data_sources",
                "Data sources",
                "Prometheus servers that draw the metric of an alert.",
                staff=True,
            ),
            Section(
                "silences", "Silences", "Suppress matching alerts for a time; list of suppressed alerts."
            ),
            Section(
                "noisiest",
                "Noisiest sources",
                "Most frequent alerts, and the effect that a silence would have had.",
            ),
            Section("maintenance", "Maintenance", "Planned work that suppresses its alerts."),
            Section("inhibitions", "Inhibition", "Alerts that suppress other alerts while firing."),
        ),
    ),
    Group(
        "Outgoing",
        (
            Section(
                "webhooks",
                "Webhooks",
                "Services that receive incident events, with delivery status.",
                staff=True,
            ),
            Section(
                "status_pages",
                "Status pages",
                "Pages for customers or colleagues; updates are written by people.",
                within=frozenset({"status_updates", "status_update_new", "status_notice"}),
            ),
            Section("chat", "Chat", "Slack and Mattermost with messages of incidents.", staff=True),
        ),
    ),
    Group(
        "Administration",
        (
            Section("people", "People", "Accounts, team memberships and roles."),
            Section("audit", "Audit", "Configuration changes with previous values.", staff=True),
        ),
    ),
)


def groups_for(*, staff: bool) -> Sequence[Group]:
    """Groups that a person may open; empty ones are left out."""
    retained = (
        Group(one.title, tuple(section for section in one.sections if staff or not section.staff))
        for one in GROUPS
    )
    return [one for one in retained if one.sections]


def section_of(address: str) -> str:
    """The section that the address of a page belongs to, by their names; empty where none does."""
    for group in GROUPS:
        for section in group.sections:
            if address == section.name or address in section.within:
                return section.name
    return ""
