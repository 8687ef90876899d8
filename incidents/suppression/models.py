"""Suppression rules: maintenance windows, inhibition rules, and recurrences of silences: tables that people edit."""

from __future__ import annotations

import uuid
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from django.contrib.postgres.fields import ArrayField
from django.db import models

from incidents.domain.suppression import rules
from incidents.domain.suppression.recurrence import Times, recurrence_from
from incidents.domain.suppression.rules import Matcher, each_matcher
from incidents.domain.values import UNREADABLE
from incidents.teams.models import Silence


class SilenceRecurrence(models.Model):
    """A silence that holds again and again, from its start until its end: first from `starts_at` to `ends_at`."""

    silence = models.OneToOneField(
        Silence, on_delete=models.CASCADE, primary_key=True, related_name="recurrence"
    )
    rule = models.CharField(max_length=200)
    time_zone = models.CharField(max_length=60)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()

    class Meta:
        db_table = "silence_recurrence"

    def __str__(self) -> str:
        return f"{self.rule} ({self.time_zone})"

    @property
    def times(self) -> Times:
        """Raises UNREADABLE."""
        again = recurrence_from("recurrence", self.rule, self.time_zone)
        return Times(self.starts_at, self.ends_at, again)


class MaintenanceWindow(models.Model):
    """Planned work, once or again and again. `edition` is what held alerts point to; it changes with every change."""

    slug = models.SlugField(max_length=60, unique=True)
    edition = models.UUIDField(default=uuid.uuid4)
    reason = models.TextField()
    components = ArrayField(models.CharField(max_length=rules.LONGEST_PATTERN), default=list)
    services = ArrayField(models.CharField(max_length=60), default=list)
    """By slug: all that belongs to them is worked on."""
    matchers: models.JSONField[Any, Any] = models.JSONField(default=list)
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    rule = models.CharField(max_length=200, blank=True, default="")
    time_zone = models.CharField(max_length=60, blank=True, default="UTC")
    mode = models.CharField(max_length=5, default="hold")

    class Meta:
        db_table = "maintenance_window"
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    @property
    def times(self) -> Times:
        """Raises UNREADABLE."""
        again = recurrence_from("recurrence", self.rule, self.time_zone) if self.rule else None
        return Times(self.starts_at, self.ends_at, again)

    def problem(self, at: datetime) -> str | None:
        """Reason why it cannot be read as it stands, so that it holds nothing; None where it can."""
        try:
            self.window({}).times.at(at)
        except UNREADABLE as error:
            return str(error)
        return None

    def window(self, patterns: Mapping[str, Sequence[str]]) -> rules.Window:
        """`patterns` are those of services, by slug; one that there is no more covers nothing. Raises UNREADABLE."""
        of_services = [one for slug in self.services for one in patterns.get(slug, ())]
        return rules.Window(
            str(self.edition),
            self.slug,
            self.reason,
            (*rules.patterns_from(self.components), *of_services),
            _matchers_of(self.matchers),
            self.times,
            rules.mode_from(self.mode),
            tuple(self.services),
        )


class InhibitionRule(models.Model):
    """While an alert that the source fits fires, alerts that the target fits call nobody."""

    slug = models.SlugField(max_length=60, unique=True)
    edition = models.UUIDField(default=uuid.uuid4)
    source_matchers: models.JSONField[Any, Any] = models.JSONField()
    target_matchers: models.JSONField[Any, Any] = models.JSONField()
    equal = ArrayField(models.CharField(max_length=255), default=list)
    comment = models.TextField(blank=True, default="")

    class Meta:
        db_table = "inhibition_rule"
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.slug

    @property
    def rule(self) -> rules.Rule:
        """Raises UNREADABLE."""
        return rules.Rule(
            self.edition,
            self.slug,
            each_matcher(self.source_matchers),
            each_matcher(self.target_matchers),
            rules.equal_from(self.equal),
        )

    @property
    def problem(self) -> str | None:
        """Reason why it cannot be read as it stands, so that it mutes nothing; None where it can."""
        try:
            _ = self.rule
        except UNREADABLE as error:
            return str(error)
        return None


def _matchers_of(matchers: object) -> tuple[Matcher, ...]:
    """Those of a window, which may have none."""
    return () if matchers == [] else each_matcher(matchers)


class InhibitingAlert(models.Model):
    """A key for which an alert that fires mutes others (`inhibiting.Sides`). Of the moment, and not rebuilt."""

    rule = models.ForeignKey(InhibitionRule, on_delete=models.CASCADE, related_name="sources")
    alert = models.UUIDField()
    title = models.TextField()
    key = models.UUIDField()

    class Meta:
        db_table = "inhibiting_alert"
        constraints = (
            models.UniqueConstraint(fields=("key", "alert"), name="an_alert_inhibits_once_for_a_key"),
        )
        indexes = (models.Index(fields=("alert",), name="inhibiting_alert_alert"),)
