"""Schedules of reports (ordinary rows that people edit), produced reports (a projection of `report.produced`),
subscriptions and mails."""

from __future__ import annotations

from django.core.validators import MaxValueValidator
from django.db import models
from django.utils import timezone

from incidents.worker.models import QueuedMail

CADENCES = (("daily", "daily"), ("weekly", "weekly"), ("monthly", "monthly"))


class ReportSchedule(models.Model):
    """A report that is produced again and again. An empty region or team means all."""

    name = models.SlugField(max_length=60, unique=True)
    title = models.CharField(max_length=120)
    cadence = models.CharField(max_length=8, choices=CADENCES)
    region = models.CharField(max_length=200, blank=True, default="")
    team = models.SlugField(max_length=60, blank=True, default="")
    zone = models.CharField(max_length=64, default="UTC")
    hour = models.PositiveSmallIntegerField(default=0, validators=[MaxValueValidator(23)])
    analyses = models.JSONField(default=list, blank=True)
    """Analyzers that are run over the whole period: `[{"analyzer": name, "params": {}}]`."""
    enabled = models.BooleanField(default=True)
    since = models.DateTimeField(default=timezone.now)
    """Periods that ended before this are not made up."""

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


def about(team: str) -> list[str]:
    """Reports about a team, in words."""
    found = ReportSchedule.objects.filter(team=team)
    return [f"the report {name}" for name in found.values_list("name", flat=True)]


class ProducedReport(models.Model):
    """One report, word for word as the log has it."""

    id = models.CharField(max_length=80, primary_key=True)
    schedule = models.CharField(max_length=60)
    start = models.DateTimeField()
    end = models.DateTimeField()
    body = models.JSONField()
    position = models.CharField(max_length=64)

    class Meta:
        ordering = ("-end", "id")
        indexes = (models.Index(fields=("schedule", "-end"), name="reports_by_schedule"),)

    def __str__(self) -> str:
        return self.id


class ReportJob(models.Model):
    """A report of a past period that somebody asked for: a claim while it is made, then what became of it.

    `state`: queued, running, done or failed (`error` says why). `step` of `steps` is under way, `what` in words.
    """

    report = models.CharField(max_length=80, primary_key=True)
    requested_by = models.CharField(max_length=200)
    created_at = models.DateTimeField(default=timezone.now)
    state = models.CharField(max_length=8, default="queued")
    claim = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    step = models.PositiveIntegerField(default=0)
    steps = models.PositiveIntegerField(default=0)
    what = models.CharField(max_length=800, blank=True, default="")
    error = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("-created_at",)

    def __str__(self) -> str:
        return f"{self.report}, {self.state}"

    @property
    def is_over(self) -> bool:
        return self.state in ("done", "failed")

    @property
    def share(self) -> float:
        return (self.step - 1) / self.steps if self.steps and self.step else 0.0


class Subscription(models.Model):
    """Someone who gets every report of a schedule by mail."""

    schedule = models.ForeignKey(ReportSchedule, on_delete=models.CASCADE, related_name="subscriptions")
    address = models.EmailField()
    since = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ("address",)
        constraints = (models.UniqueConstraint(fields=("schedule", "address"), name="one_subscription"),)

    def __str__(self) -> str:
        return f"{self.address}: {self.schedule_id}"


class ReportEmail(QueuedMail):
    """One report to one address."""

    report = models.ForeignKey(ProducedReport, on_delete=models.CASCADE, related_name="emails")
    address = models.EmailField()

    class Meta:
        ordering = ("-report__end", "address")
        constraints = (models.UniqueConstraint(fields=("report", "address"), name="one_email_per_report"),)
        indexes = (models.Index(fields=("state", "next_at"), name="report_emails_due"),)

    def __str__(self) -> str:
        return f"{self.report_id} to {self.address}: {self.state}"
