"""Rows that tests of escalations need: Alice and Bob in Storage, and a policy that calls them in turn."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

from django.contrib.auth.models import User

from incidents import commands, queries
from incidents.commands import Report
from incidents.domain.incident.escalation import Escalation
from incidents.escalation.models import EscalationPolicy, EscalationRow
from incidents.escalation.sweep import sweep
from incidents.notifications.models import Notification
from incidents.teams.models import Membership, Team
from ingest.queries import Context

ALICE = Context("user:alice")
STEPS = [
    {"after": 0, "actions": [{"person": "alice"}]},
    {"after": 300, "actions": [{"person": "bob"}]},
]


def people(*names: str) -> None:
    for name in names:
        User.objects.create_user(name, f"{name}@example.org", "secret-4711")


def member(name: str, team: str, role: str = "responder") -> None:
    Membership.objects.create(
        user=User.objects.get(username=name), team=Team.objects.get(slug=team), role=role
    )


def policy(slug: str = "storage", team: str | None = "storage", **fields: Any) -> EscalationPolicy:
    owner = None if team is None else Team.objects.get(slug=team)
    given = {"name": slug.title(), "steps": STEPS, "repeats": 1, "acknowledgement_timeout": 1800, **fields}
    return EscalationPolicy.objects.create(slug=slug, team=owner, **given)


def ticket(component: str = "storage_cluster/s7", **fields: Any) -> str:
    report = Report("Disks fail", component=component, **fields)
    return commands.open_incident(report, ALICE).incident.id


def stands(id_: str) -> Escalation:
    return EscalationRow.objects.get(incident__pk=id_).escalation


def calls(id_: str) -> list[str | None]:
    return list(
        Notification.objects.filter(incident=id_).order_by("made_at", "key").values_list("person", flat=True)
    )


def told(id_: str) -> list[str]:
    return [entry.text for entry in queries.timeline(id_)]


class Clock:
    """Time that the test moves on; the sweep runs at each stop."""

    def __init__(self, id_: str) -> None:
        self.now: datetime = queries.get(id_).incident.opened_at

    def later(self, seconds: float = 0) -> int:
        self.now += timedelta(seconds=seconds)
        return sum(iter(lambda: sweep(self.now), 0))
