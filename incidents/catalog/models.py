"""Teams and the rules that route tickets to them: ordinary tables that people edit.

A ticket keeps the decision and its reason in `incident.opened`, so editing a rule changes no past.
"""

from __future__ import annotations

import uuid
from datetime import datetime

from django.conf import settings
from django.db import models
from django.utils import timezone

from incidents.domain import routing, silencing


class Team(models.Model):
    """Who works on tickets. Exactly one team is the default, for components that no rule matches."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True, default="")
    is_default = models.BooleanField(default=False)

    class Meta:
        ordering = ("slug",)
        constraints = (
            models.UniqueConstraint(
                fields=("is_default",), condition=models.Q(is_default=True), name="one_default_team"
            ),
        )

    def __str__(self) -> str:
        return self.name


class Membership(models.Model):
    """A person in a team, and what they may do there: each role may do what those before it may."""

    class Role(models.TextChoices):
        VIEWER = "viewer"
        RESPONDER = "responder"
        MANAGER = "manager"
        ADMIN = "admin"

    team = models.ForeignKey(Team, on_delete=models.CASCADE, related_name="memberships")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="memberships")
    role = models.CharField(max_length=10, choices=Role.choices, default=Role.RESPONDER)

    class Meta:
        ordering = ("team", "user")
        constraints = (models.UniqueConstraint(fields=("team", "user"), name="once_in_a_team"),)

    def __str__(self) -> str:
        return f"{self.user} in {self.team} as {self.role}"


class Route(models.Model):
    """Components that match `pattern` belong to `team`; the lowest `order` that matches wins."""

    order = models.PositiveIntegerField(unique=True)
    pattern = models.CharField(max_length=200)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="routes")

    class Meta:
        ordering = ("order",)

    def __str__(self) -> str:
        return f"{self.order}: {self.pattern}"


def routing_table() -> routing.RoutingTable:
    """The rules in force now."""
    default = Team.objects.get(is_default=True)
    return routing.RoutingTable(
        rules=[routing.Rule(r.pattern, _team(r.team)) for r in Route.objects.select_related("team")],
        default=_team(default),
    )


def _team(team: Team) -> routing.Team:
    return routing.Team(team.slug, team.name)


class Silence(models.Model):
    """Alerts that call nobody for a time. An expired one stays, so that a ticket's past explains itself."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    matchers = models.JSONField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    created_by = models.CharField(max_length=255)
    comment = models.TextField()
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-ends_at", "id")
        indexes = (models.Index(fields=("ends_at",), name="silence_ends_at"),)

    def __str__(self) -> str:
        return f"{self.comment} ({self.created_by})"

    @property
    def rule(self) -> silencing.Silence:
        return silencing.Silence(
            str(self.id),
            silencing.matchers_from(self.matchers),
            self.starts_at,
            self.ends_at,
            self.created_by,
            self.comment,
        )


def silences_in_force(at: datetime | None = None) -> list[silencing.Silence]:
    """Those that hold now, the one that ends last first."""
    moment = at or timezone.now()
    return [row.rule for row in Silence.objects.filter(starts_at__lte=moment, ends_at__gt=moment)]
