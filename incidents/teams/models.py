"""Teams, their services and the rules that route incidents to them: ordinary tables that people edit.

An incident keeps the decision and its reason in `incident.opened`, so editing a rule changes no past.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.contrib.auth import get_user_model
from django.contrib.postgres.fields import ArrayField
from django.db import models
from django.utils import timezone

from incidents.domain.permissions import ROLES, ForbiddenError, Person, may, needed, refusal
from incidents.domain.routing import rules, schema
from incidents.domain.suppression.rules import Silence as SilenceRule
from incidents.domain.suppression.rules import matchers_from
from incidents.domain.values import UNREADABLE, InvalidValueError, check_severity
from ingest.queries import Context

log = structlog.get_logger("catalog")


class Team(models.Model):
    """People who work on incidents. Exactly one team is the default, for components that no rule matches."""

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
    """A service of a team; components that match one of `patterns` are its parts. It needs those that it depends on."""

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
        team, team_name = (None, None) if self.team is None else (self.team.slug, self.team.name)
        parent = None if self.parent is None else self.parent.name
        service = None if self.service is None else self.service.slug
        return _written(
            self.name, parent, self.order, self.pattern, self.when, team, team_name, service, self.severity,
            self.policy, self.grouping, self.follow_suggestion,
        )  # fmt: skip


_ROUTE = (
    "name", "parent__name", "order", "pattern", "when", "team__slug", "team__name", "service__slug", "severity",
    "policy", "grouping", "follow_suggestion",
)  # fmt: skip
_SERVICE = ("slug", "name", "team__slug", "team__name", "patterns")
Rows = list[tuple[Any, ...]]
_last: list[tuple[tuple[Rows, ...], rules.RoutingTable]] = []
"""The rows that the routing table was last parsed from in this process, and the table."""


def routing_table() -> rules.RoutingTable:
    """The rules in force now. They are read every time, and parsed when they are others than last time."""
    default = Team.objects.filter(is_default=True).values_list("slug", "name")
    version = (_route_rows(), list(default), *_service_rows())
    for known, table in _last:
        if known == version:
            return table
    written, passed_over = _as_written(version[0])
    table = rules.RoutingTable(
        rules=schema.tree_from(written),
        default=rules.Team(*version[1][0]),
        services=_services(*version[2:]),
        passed_over=passed_over,
    )
    _last[:] = [(version, table)]
    return table


def rules_as_written() -> tuple[list[schema.Written], dict[str, str]]:
    """The rules that count, and by name those that cannot be read, with the reason.

    What was right when it was written may be no more (a time zone that its database has dropped); one rule must not
    keep all alerts from their incidents.
    """
    return _as_written(_route_rows())


def services_by_slug() -> dict[str, rules.Service]:
    return _services(*_service_rows())


def _route_rows() -> Rows:
    return list(Route.objects.values_list(*_ROUTE))


def _service_rows() -> tuple[Rows, Rows]:
    needs = Service.depends_on.through.objects.order_by("from_service__slug", "to_service__slug")
    return (
        list(Service.objects.values_list(*_SERVICE)),
        list(needs.values_list("from_service__slug", "to_service__slug")),
    )


def _as_written(rows: Rows) -> tuple[list[schema.Written], dict[str, str]]:
    written: list[schema.Written] = []
    unreadable: dict[str, str] = {}
    for row in rows:
        try:
            written.append(_written(*row))
        except InvalidValueError as error:
            unreadable[row[0]] = str(error)
    passed_over = schema.children_of_unreadable(unreadable, {row[0]: row[1] for row in rows})
    return [one for one in written if one.rule.name not in passed_over], passed_over


def _written(
    name: str, parent: str | None, order: int, pattern: str, when: Any, team: str | None, team_name: str | None,
    service: str | None, severity: str | None, policy: str | None, grouping: Any, follow_suggestion: bool | None,
) -> schema.Written:  # fmt: skip
    rule = rules.Rule(
        name=name,
        when=schema.conditions_from(pattern, when),
        team=None if team is None else rules.Team(team, team_name or ""),
        service=service,
        severity=None if severity is None else check_severity("severity", severity),
        policy=policy,
        grouping=schema.grouping_from(grouping),
        follow_suggestion=follow_suggestion,
    )
    return schema.Written(rule, parent, order)


def _services(rows: Rows, needs: Rows) -> dict[str, rules.Service]:
    needed: dict[str, list[str]] = {}
    for slug, other in needs:
        needed.setdefault(slug, []).append(other)
    return {
        slug: rules.Service(
            slug, name, None if team is None else rules.Team(team, team_name), tuple(patterns),
            tuple(sorted(needed.get(slug, ()))),
        )
        for slug, name, team, team_name, patterns in rows
    }  # fmt: skip


def teams_by_slug() -> dict[str, rules.Team]:
    return {row.slug: rules.Team(row.slug, row.name) for row in Team.objects.all()}


class Silence(models.Model):
    """Alerts that call nobody for a time. An expired one stays, so that an incident's past explains itself."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    matchers = models.JSONField()
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    created_by = models.CharField(max_length=255)
    comment = models.TextField()
    annotations = models.JSONField(default=dict, db_default=models.Value({}, models.JSONField()))
    """Notes of a client of Alertmanager's API beside the comment: texts by name."""
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-ends_at", "id")
        indexes = (models.Index(fields=("ends_at",), name="silence_ends_at"),)

    def __str__(self) -> str:
        return f"{self.comment} ({self.created_by})"

    @property
    def rule(self) -> SilenceRule:
        """Raises UNREADABLE, as its `times` do."""
        again = getattr(self, "recurrence", None)  # of incidents.suppression, where there is one
        return SilenceRule(
            str(self.id),
            matchers_from(self.matchers),
            self.starts_at,
            self.ends_at,
            self.created_by,
            self.comment,
            None if again is None else again.times,
        )


class ReportIdempotencyKey(models.Model):
    """Result of a report that was sent with an Idempotency-Key. State: kept for a day, rebuilt by nothing."""

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


def silences_in_force(at: datetime | None = None) -> list[SilenceRule]:
    """Those that hold now, the one that ends last first."""
    return silences_as_written(at)[0]


Unreadable = list[tuple[str, str]]
"""Name of a row, and the reason why it cannot be read."""


def silences_as_written(at: datetime | None = None) -> tuple[list[SilenceRule], Unreadable]:
    """Those that hold now, and those that would if they could be read: a call too many is better than none."""
    moment = at or timezone.now()
    rows = Silence.objects.filter(starts_at__lte=moment, ends_at__gt=moment).select_related("recurrence")
    found: list[SilenceRule] = []
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


# Roles
# ----------------------------------------------------------------------------------------------------------
PEOPLE = "user:"


def actor_name(context: Context) -> str | None:
    """The name of the person who acts; None for a key or the system."""
    return context.actor.removeprefix(PEOPLE) if context.actor.startswith(PEOPLE) else None


def person(name: str) -> Person | None:
    """Somebody and their roles; None as long as nobody is in any team, when everybody may work on every incident."""
    held = Membership.objects.select_related("team").filter(user__username=name)
    roles = {row.team.slug: row.role for row in held}
    if not roles and not Membership.objects.exists():
        return None
    found = get_user_model().objects.filter(username=name, is_active=True).first()
    if found is None:
        return Person(name)
    return Person(name, found.is_staff or found.is_superuser, roles)


def people_allowed(command: str, teams: Collection[str]) -> list[str]:
    """Names of the people in these teams, or with none in any, who could; not of staff."""
    enough = ROLES[ROLES.index(needed(command)) :]
    found = Membership.objects.filter(role__in=enough, user__is_active=True)
    if teams:
        found = found.filter(team__slug__in=list(teams))
    return sorted(set(found.values_list("user__username", flat=True)))


def allow_at(command: str, team: str | None, context: Context) -> None:
    """Raises ForbiddenError where the actor is a person who may not do that to what belongs to the team.

    What belongs to no team is open to those who may do it in any.
    """
    name = actor_name(context)
    actor = None if name is None else person(name)
    teams = list(actor.roles) if actor is not None and team is None else [team] if team else []
    if actor is not None and not may(actor, command, teams):
        raise ForbiddenError(refusal(actor, command, teams, people_allowed(command, teams)))
