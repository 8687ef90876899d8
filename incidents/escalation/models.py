"""Escalation policies: ordinary rows that people edit; and where each incident's escalation stands: a read model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from django.db import models

from incidents.domain.escalation.policy import USUAL_WAIT, Policy, policy_from
from incidents.domain.incident.escalation import CONCERNS, Escalation, as_json, escalation_from, follow
from incidents.incident.models import IncidentRow
from incidents.incident.projection import Change
from incidents.incident.projection import change as whole
from incidents.incident.repository import stream_of
from incidents.teams.models import Team
from ingest.db.database import upsert
from ingest.queries import read_stream


class EscalationPolicy(models.Model):
    """Escalation policy: people to call, in order and with the times in between (`domain.escalation.policy`). With a
    team it is what that team's incidents follow when no route names another."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    team = models.OneToOneField(Team, null=True, on_delete=models.PROTECT, related_name="escalation_policy")
    steps = models.JSONField()
    repeats = models.PositiveSmallIntegerField(default=0)
    repeat_after = models.PositiveIntegerField(default=USUAL_WAIT)
    acknowledgement_timeout = models.PositiveIntegerField(null=True)
    restart_when_worse = models.BooleanField(default=False)

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.name

    @property
    def policy(self) -> Policy:
        return policy_from({name: getattr(self, name) for name in POLICY_FIELDS})


POLICY_FIELDS = (
    "slug",
    "name",
    "steps",
    "repeats",
    "repeat_after",
    "acknowledgement_timeout",
    "restart_when_worse",
)


class EscalationRow(models.Model):
    """Progress of an incident's escalation, and its timer; event `version` changed it last."""

    incident = models.OneToOneField(
        IncidentRow, primary_key=True, on_delete=models.CASCADE, related_name="escalation"
    )
    version = models.IntegerField()
    phase = models.CharField(max_length=12)
    due_at = models.DateTimeField(null=True)
    state = models.JSONField()

    class Meta:
        db_table = "incident_escalation"
        indexes = (
            models.Index(
                fields=("due_at",), condition=models.Q(due_at__isnull=False), name="escalation_timers"
            ),
        )

    @property
    def escalation(self) -> Escalation:
        state: dict[str, Any] = self.state
        return escalation_from(state)


def project(changes: Sequence[Change]) -> None:
    """Brings the escalations of incidents up to their newest events; most events change nothing about one."""
    about = [change for change in changes if any(event.type in CONCERNS for event in change.events)]
    changed = [change.after.id for change in about if change.before is not None]
    rows = (
        EscalationRow.objects.filter(incident__pk__in=changed).values_list("pk", "state") if changed else ()
    )
    known = {str(pk): escalation_from(state) for pk, state in rows}
    followed = [_followed(change, known.get(change.after.id)) for change in about]
    upsert(EscalationRow, followed, ("incident_id",))


def rows(changes: Sequence[Change]) -> list[dict[str, Any]]:
    """The same of all events of incidents."""
    return [_followed(change, None) for change in changes]


def _followed(change: Change, known: Escalation | None) -> dict[str, Any]:
    """The columns of its EscalationRow."""
    if known is None and change.before is not None:
        # An incident that is older than escalations: its own events say how it stands.
        change = whole(None, read_stream(stream_of(change.after.id)))
    version = 0
    for event, state in zip(change.events, change.states, strict=True):
        if event.type in CONCERNS:
            known, version = follow(known, state, event), event.version
    assert known is not None, "an incident's first event opens it"
    return {
        "incident_id": change.after.id,
        "version": version,
        "phase": known.phase,
        "due_at": known.due_at,
        "state": as_json(known),
    }
