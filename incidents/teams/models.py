"""Teams, their services and the rules that route incidents to them: ordinary tables that people edit.

An incident keeps the decision and its reason in `incident.opened`, so editing a rule changes no past.
"""

from __future__ import annotations

import uuid
from datetime import datetime

import structlog
from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from incidents.domain.routing import rules, schema
from incidents.domain.suppression import silences
from incidents.domain.values import UNREADABLE, InvalidValueError, check_severity

log = structlog.get_logger("catalog")


class Team(models.Model):
    """Who works on incidents. Exactly one team is the default, for components that no rule matches."""

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


class Service(models.Model):
    """What a team offers; components that match one of `patterns` are its parts. It needs those that it depends on."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True, default="")
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="services")
    patterns = ArrayField(models.CharField(max_length=200), default=list)
    depends_on = models.ManyToManyField("self", symmetrical=False, related_name="dependents")

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.name

    @property
    def rule(self) -> rules.Service:
        return rules.Service(
            self.slug,
            self.name,
            None if self.team is None else _team(self.team),
            tuple(self.patterns),
            tuple(sorted(one.slug for one in self.depends_on.all())),
        )


class Route(models.Model):
    """A rule of the tree: of those beneath `parent`, the lowest `order` that matches wins, then the first name.

    What it asks besides `pattern` is `when`, in the form of `domain.rule_form`; what is null it has from its parent.
    """

    name = models.SlugField(max_length=60, unique=True)
    parent = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="children")
    order = models.PositiveIntegerField()
    pattern = models.CharField(max_length=200, blank=True, default="")
    when = models.JSONField(default=dict)
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="routes")
    service = models.ForeignKey(Service, null=True, on_delete=models.PROTECT, related_name="routes")
    severity = models.CharField(max_length=8, null=True)
    policy = models.CharField(max_length=60, null=True)
    grouping = models.JSONField(null=True)
    follow_suggestion = models.BooleanField(null=True)

    class Meta:
        ordering = ("order", "name")

    def __str__(self) -> str:
        return self.name

    @property
    def written(self) -> schema.Written:
        rule = rules.Rule(
            name=self.name,
            when=schema.conditions_from(self.pattern, self.when),
            team=None if self.team is None else _team(self.team),
            service=None if self.service is None else self.service.slug,
            severity=None if self.severity is None else check_severity("severity", self.severity),
            policy=self.policy,
            grouping=schema.grouping_from(self.grouping),
            follow_suggestion=self.follow_suggestion,
        )
        return schema.Written(rule, None if self.parent is None else self.parent.name, self.order)


def routing_table() -> rules.RoutingTable:
    """The rules in force now."""
    written, passed_over = rules_as_written()
    return rules.RoutingTable(
        rules=schema.tree_from(written),
        default=_team(Team.objects.get(is_default=True)),
        services=services_by_slug(),
        passed_over=passed_over,
    )


def rules_as_written() -> tuple[list[schema.Written], dict[str, str]]:
    """The rules that count, and by name those that cannot be read, with the reason.

    What was right when it was written may be no more (a time zone that its database has dropped); one rule must not
    keep all alerts from their incidents.
    """
    rows = list(Route.objects.select_related("team", "service", "parent"))
    written: list[schema.Written] = []
    unreadable: dict[str, str] = {}
    for row in rows:
        try:
            written.append(row.written)
        except InvalidValueError as error:
            unreadable[row.name] = str(error)
    parents = {row.name: None if row.parent is None else row.parent.name for row in rows}
    passed_over = schema.beneath_unreadable(unreadable, parents)
    return [one for one in written if one.rule.name not in passed_over], passed_over


def services_by_slug() -> dict[str, rules.Service]:
    rows = Service.objects.select_related("team").prefetch_related("depends_on")
    return {row.slug: row.rule for row in rows}


def teams_by_slug() -> dict[str, rules.Team]:
    return {row.slug: _team(row) for row in Team.objects.all()}


def _team(team: Team) -> rules.Team:
    return rules.Team(team.slug, team.name)


class Silence(models.Model):
    """Alerts that call nobody for a time. An expired one stays, so that an incident's past explains itself."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    matchers = models.JSONField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    created_by = models.CharField(max_length=255)
    comment = models.TextField()
    annotations = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    """What a client of Alertmanager's API notes beside the comment: texts by name."""
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-ends_at", "id")
        indexes = (models.Index(fields=("ends_at",), name="silence_ends_at"),)

    def __str__(self) -> str:
        return f"{self.comment} ({self.created_by})"

    @property
    def rule(self) -> silences.Silence:
        """Raises UNREADABLE, as its `times` do."""
        again = getattr(self, "recurrence", None)  # of incidents.suppression, where there is one
        return silences.Silence(
            str(self.id),
            silences.matchers_from(self.matchers),
            self.starts_at,
            self.ends_at,
            self.created_by,
            self.comment,
            None if again is None else again.times,
        )


class ReportIdempotencyKey(models.Model):
    """What a report became that was sent with an Idempotency-Key. State: kept for a day, rebuilt by nothing."""

    id = models.BigAutoField(primary_key=True)
    actor = models.TextField()
    key = models.TextField()
    digest = models.BinaryField()
    incident = models.UUIDField()
    opened = models.BooleanField()
    first = models.IntegerField()
    last = models.IntegerField()
    at = models.DateTimeField(db_index=True)

    class Meta:
        db_table = "report_idempotency_key"
        constraints = (models.UniqueConstraint(fields=("actor", "key"), name="one_report_per_key"),)


def silences_in_force(at: datetime | None = None) -> list[silences.Silence]:
    """Those that hold now, the one that ends last first."""
    return silences_as_written(at)[0]


Unreadable = list[tuple[str, str]]
"""What it is called, and why it cannot be read."""


def silences_as_written(at: datetime | None = None) -> tuple[list[silences.Silence], Unreadable]:
    """Those that hold now, and those that would if they could be read: a call too many is better than none."""
    moment = at or timezone.now()
    rows = Silence.objects.filter(starts_at__lte=moment, ends_at__gt=moment).select_related("recurrence")
    found: list[silences.Silence] = []
    unreadable: Unreadable = []
    for row in rows:
        try:
            rule = row.rule
            if rule.span(moment) is not None:
                found.append(rule)
        except UNREADABLE as error:
            log.warning("a silence cannot be read", silence=str(row.pk), error=str(error))
            unreadable.append((f"the silence “{row.comment[:60]}”", str(error)))
    return found, unreadable
