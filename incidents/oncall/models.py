"""Schedules of who is on call, what was overridden, calendars of who is away: ordinary tables that people edit."""

from __future__ import annotations

import uuid
from typing import Any

from django.conf import settings
from django.db import models

from incidents.teams.models import Team


class Calendar(models.Model):
    """Days and hours out of an iCalendar file: a person's, who is away then, or public holidays (no person)."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    person = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        related_name="away_calendars",
    )
    text = models.TextField()
    spans: models.JSONField[Any, Any] = models.JSONField(default=list)
    """Entries of `text` when it was read: lists of start, end and summary (`calendars.expand`)."""
    read_until = models.DateTimeField(null=True)
    """End of the recurrences that were followed."""

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.name


class OnCallSchedule(models.Model):
    """An on-call schedule; `domain.oncall.layers` reads its layers."""

    slug = models.SlugField(max_length=60, unique=True)
    name = models.CharField(max_length=120)
    team = models.ForeignKey(Team, on_delete=models.SET_NULL, null=True, blank=True, related_name="schedules")
    time_zone = models.CharField(max_length=60, default="UTC")
    layers: models.JSONField[Any, Any] = models.JSONField()
    holidays: models.ManyToManyField[Calendar, Any] = models.ManyToManyField(
        Calendar, blank=True, related_name="schedules"
    )
    """Public holidays, for layers that are for holidays only, or for none."""

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.name


class Override(models.Model):
    """`person` is on call then, whoever it would be. The one that was made last wins. Two of one `swap` go together."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    schedule = models.ForeignKey(OnCallSchedule, on_delete=models.CASCADE, related_name="overrides")
    person = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="overrides")
    starts_at = models.DateTimeField()
    ends_at = models.DateTimeField()
    reason = models.CharField(max_length=500)
    swap = models.UUIDField(null=True)
    made_by = models.CharField(max_length=255)
    made_at = models.DateTimeField()

    class Meta:
        ordering = ("made_at", "id")
        indexes = (models.Index(fields=("schedule", "ends_at"), name="override_schedule_ends"),)

    def __str__(self) -> str:
        return f"{self.person} from {self.starts_at} to {self.ends_at}: {self.reason}"


class CalendarFeed(models.Model):
    """A secret address at which a calendar program reads the shifts. It works while its maker may sign in."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    schedule = models.ForeignKey(OnCallSchedule, on_delete=models.CASCADE, related_name="feeds")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="feeds")
    mine = models.BooleanField(default=False)
    """The shifts of its maker alone."""
    digest = models.CharField(max_length=64, unique=True)
    """SHA-256 of the secret, in hex."""
    made_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("made_at", "id")

    def __str__(self) -> str:
        return f"{self.schedule} for {self.user}"
