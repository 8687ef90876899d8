"""Escalation policies: ordinary rows that people edit; and where each incident's escalation stands: a read model."""

from __future__ import annotations

from typing import Any

from django.db import models

from incidents.domain.escalation.policy import USUAL_WAIT, Policy, policy_from
from incidents.domain.incident.escalation import Escalation, escalation_from
from incidents.incident.models import IncidentRow
from incidents.teams.models import Team


class EscalationPolicy(models.Model):
    """Who is called, in which order and after how long (`domain.escalation.policy`). With a team it is what that
    team's incidents follow when no route names another."""

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
    """How far the escalation of an incident has come, and its timer; event `version` changed it last."""

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
