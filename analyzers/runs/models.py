"""Schedules, runs, and what runs keep."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta

from django.core.validators import RegexValidator
from django.db import models
from django.db.models import F, Q

from analyzers.runs.timing import Cadence

EVERY_REGION = ""


class Schedule(models.Model):
    """Schedule of an analyzer. An ordinary, editable table."""

    name = models.CharField(
        max_length=60,
        unique=True,
        validators=[RegexValidator(r"^[a-z0-9][a-z0-9_-]*\Z", "lower case letters, digits, - and _ only")],
        help_text="permanent: incidents remember which schedule blamed a component",
    )
    analyzer = models.CharField(max_length=60)
    region = models.CharField(
        max_length=600, blank=True, default=EVERY_REGION, help_text="empty: every region that sends"
    )
    input = models.CharField(
        max_length=60,
        blank=True,
        default="",
        help_text="input of the analyzer; empty: the first with rows",
    )
    params = models.JSONField(default=dict, blank=True)
    length = models.DurationField(help_text="of a window")
    every = models.DurationField(
        help_text="interval between the ends of windows, on multiples since the epoch"
    )
    grace = models.DurationField(
        default=timedelta(seconds=30),
        help_text="grace after the end of a window, in data time, before it is read",
    )
    idle = models.DurationField(
        default=timedelta(minutes=2),
        help_text="after this long without telemetry the data clock goes on with the wall",
    )
    history = models.PositiveIntegerField(
        null=True,
        blank=True,
        help_text="preceding windows to give; empty: the analyzer's wish",
    )
    enabled = models.BooleanField(default=True)
    by_arrival = models.BooleanField(
        default=True, help_text="look whenever telemetry arrives, without waiting for the next tick"
    )

    class Meta:
        ordering = ("name",)
        constraints = (
            models.CheckConstraint(
                name="schedule_spans",
                condition=Q(
                    length__gt=timedelta(0),
                    every__gt=timedelta(0),
                    grace__gte=timedelta(0),
                    idle__gte=timedelta(0),
                ),
            ),
        )

    def __str__(self) -> str:
        return self.name

    @property
    def cadence(self) -> Cadence:
        return Cadence(self.length, self.every, self.grace)

    def key(self, region: str) -> str:
        """Name of this schedule in one region in the log: windows are consecutive only within it."""
        return f"{self.name}@{region}"


class State(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"


UNFINISHED = (State.QUEUED, State.RUNNING)


class Run(models.Model):
    """One analyzer on one window: a claim while it is under way, then an index of what the log holds."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    schedule = models.ForeignKey(Schedule, null=True, on_delete=models.SET_NULL, related_name="runs")
    schedule_key = models.CharField(max_length=700, null=True)
    repeats = models.ForeignKey("self", null=True, on_delete=models.PROTECT, related_name="repetitions")
    requested_by = models.CharField(max_length=200)

    analyzer = models.CharField(max_length=60)
    region = models.CharField(max_length=600)
    params = models.JSONField(default=dict)
    input = models.CharField(max_length=60, blank=True, default="")
    window_start = models.DateTimeField()
    window_end = models.DateTimeField()
    history_wanted = models.PositiveIntegerField(null=True)
    report = models.BooleanField(default=True)

    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    created_at = models.DateTimeField()
    sent_at = models.DateTimeField(null=True)
    claim = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    finished_at = models.DateTimeField(null=True)

    version = models.CharField(max_length=40, blank=True, default="")
    status = models.CharField(max_length=20, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    error = models.TextField(blank=True, default="")
    blamed = models.JSONField(default=list)
    seconds = models.FloatField(null=True)
    window_hash = models.CharField(max_length=64, blank=True, default="")
    history = models.JSONField(default=list)
    verdict_hash = models.CharField(max_length=64, blank=True, default="")
    input_position = models.CharField(max_length=64, blank=True, default="")
    identical = models.BooleanField(null=True)

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=("-created_at", "-id"), name="run_newest"),
            models.Index(fields=("analyzer", "-created_at"), name="run_of_analyzer"),
            models.Index(fields=("region", "window_end"), name="run_window"),
            models.Index(fields=("state",), name="run_unfinished", condition=Q(state__in=UNFINISHED)),
        )
        constraints = (
            models.UniqueConstraint(fields=("schedule", "region", "window_end"), name="run_once_per_window"),
            # Windows of a schedule stay in order and apart, whichever worker claims them.
            models.UniqueConstraint(
                fields=("schedule", "region"), name="run_one_at_a_time", condition=Q(state__in=UNFINISHED)
            ),
            models.CheckConstraint(name="run_window_order", condition=Q(window_start__lt=F("window_end"))),
        )

    def __str__(self) -> str:
        return f"{self.analyzer} on {self.region} {self.window_start:%Y-%m-%d %H:%M}, {self.state}"

    @property
    def stream(self) -> str:
        return f"run/{self.id}"

    @property
    def length(self) -> timedelta:
        return self.window_end - self.window_start

    @property
    def window(self) -> tuple[datetime, datetime]:
        return self.window_start, self.window_end

    @property
    def bounds(self) -> dict[str, datetime]:
        return {"start": self.window_start, "end": self.window_end}


class TelemetryCursor(models.Model):
    """Cursor of one kind in one region: a projection of `telemetry.received`, in log order.

    A clock that moved with the rows themselves would pass the end of a window while an earlier body of it
    was still being committed; in the log's order it cannot.
    """

    region = models.CharField(max_length=600)
    kind = models.CharField(max_length=60)
    first = models.DateTimeField(help_text="oldest data time")
    latest = models.DateTimeField(help_text="newest data time")
    first_arrived_at = models.DateTimeField()
    arrived_at = models.DateTimeField(help_text="time of receipt of the newest data time")
    last_received_at = models.DateTimeField(help_text="time of receipt of the latest row")

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("region", "kind"), name="telemetry_cursor_region_kind"),
        )

    def __str__(self) -> str:
        return f"{self.kind} of {self.region}"


class ProbeRequest(models.Model):
    """A probe that an incident asks agents for, shown on ping lists until a time. A queue: nothing is rebuilt from it,
    the incident's events say what was asked."""

    region = models.CharField(max_length=600)
    incident = models.BigIntegerField(help_text="number of the incident")
    question = models.CharField(max_length=40, help_text="id of the question")
    src = models.CharField(max_length=600)
    dst = models.CharField(max_length=600)
    hops = models.JSONField(default=list, help_text="components that the probes should pass; empty: any path")
    packets = models.PositiveIntegerField()
    until = models.DateTimeField()

    class Meta:
        constraints = (models.UniqueConstraint(fields=("incident", "question"), name="probe_request_once"),)
        indexes = (models.Index(fields=("region", "until"), name="probe_request_region"),)

    def __str__(self) -> str:
        return f"{self.src} -> {self.dst} for #{self.incident}"


class StoredWindow(models.Model):
    """The sums of a window, canonically serialised, under their sha256. Written once, shared by runs."""

    hash = models.CharField(max_length=64, primary_key=True)
    body = models.BinaryField()
    used_at = models.DateTimeField(auto_now_add=True, db_index=True)
    """Time of the last read by a run, as its window or as history."""

    def __str__(self) -> str:
        return self.hash


class StoredVerdict(models.Model):
    """A verdict without its seconds, canonical JSON, under its sha256."""

    hash = models.CharField(max_length=64, primary_key=True)
    body = models.BinaryField()
    used_at = models.DateTimeField(auto_now_add=True, db_index=True)
    """Time of the last run that came to it."""

    def __str__(self) -> str:
        return self.hash
