"""The page that leads to all that configures Dossier."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show


@dataclass(frozen=True, slots=True)
class Section:
    """A page of settings: the name of its address, its title, and what one does there."""

    name: str
    title: str
    does: str


SECTIONS: Final = (
    Section("integrations", "Integrations", "Connect what sends alerts and telemetry; keys and mappings."),
    Section("teams", "Teams", "Who works on tickets."),
    Section(
        "routes",
        "Routes",
        "Which ticket goes to which team, and which alerts share one; tried before they count.",
    ),
    Section(
        "services", "Services", "What teams offer, the components that belong to it, and what fails with one."
    ),
    Section(
        "on_call_schedules", "On-call schedules", "Who takes turns, at which hours; holidays and who is away."
    ),
    Section(
        "policies",
        "Escalation policies",
        "Who is called for a ticket that nobody answers, and after how long.",
    ),
    Section("maintenance", "Maintenance", "Planned work, during which its alerts call nobody."),
    Section("inhibitions", "Inhibition", "Which alerts mute others while they fire."),
    Section("schedules", "Analyses", "When which analyzer runs over which region."),
    Section("notifications", "How Dossier reaches you", "Your contact methods, rules and quiet hours."),
    Section("people", "People", "Who may sign in, who is in which team, and what they may do there."),
    Section("channels", "Channels", "Rooms, numbers and programs that teams share."),
    Section("webhooks", "Webhooks", "Which programs of yours are told of tickets, and how they do."),
    Section("audit", "Audit", "Who changed what, and what it was before."),
)


@page
@require_safe
def settings(request: HttpRequest) -> HttpResponse:
    return show(request, "frontend/settings.html", {"sections": SECTIONS}, section="settings")
