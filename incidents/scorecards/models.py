"""Backtests that people asked for: what was asked, how far it is, what it came to. Nothing here is in the log: a
backtest changes nothing, and can be done again."""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q


class State(models.TextChoices):
    QUEUED = "queued"
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"


UNFINISHED = (State.QUEUED, State.RUNNING)


class BacktestRow(models.Model):
    """One backtest. Its windows are planned when it first starts, so that how many there are does not change."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    analyzer = models.CharField(max_length=60)
    version = models.CharField(max_length=40)
    params = models.JSONField(default=dict)
    regions = models.JSONField(default=list)
    start = models.DateTimeField()
    end = models.DateTimeField()
    length = models.DurationField()
    every = models.DurationField()
    against = models.ForeignKey("self", null=True, on_delete=models.SET_NULL, related_name="followed_by")
    """The backtest whose windows this one judges, too."""

    requested_by = models.CharField(max_length=200)
    created_at = models.DateTimeField()
    state = models.CharField(max_length=10, choices=State, default=State.QUEUED)
    sent_at = models.DateTimeField(null=True)
    claim = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    attempts = models.PositiveIntegerField(default=0)
    """Turns that ended without a word, one after the other."""
    started_at = models.DateTimeField(null=True)
    finished_at = models.DateTimeField(null=True)

    total = models.PositiveIntegerField(null=True)
    done = models.PositiveIntegerField(default=0)
    position = models.CharField(max_length=64, blank=True, default="")
    """The place in the log that every window is read at."""
    causes = models.JSONField(default=list)
    """The confirmed causes when it started, which it is measured by."""
    result = models.JSONField(null=True)
    error = models.TextField(blank=True, default="")

    class Meta:
        ordering = ("-created_at", "-id")
        indexes = (
            models.Index(fields=("-created_at", "-id"), name="backtest_newest"),
            models.Index(fields=("state",), name="backtest_unfinished", condition=Q(state__in=UNFINISHED)),
        )
        constraints = (models.CheckConstraint(name="backtest_span", condition=Q(start__lt=F("end"))),)

    def __str__(self) -> str:
        return f"{self.analyzer} {self.version}, {self.start:%Y-%m-%d %H:%M} to {self.end:%Y-%m-%d %H:%M}"

    @property
    def is_over(self) -> bool:
        return self.state not in UNFINISHED

    @property
    def share(self) -> float:
        """Finished share, from 0 to 1."""
        return self.done / self.total if self.total else 0.0


class BacktestWindow(models.Model):
    """One window of a backtest; `status` is empty until it was judged."""

    backtest = models.ForeignKey(BacktestRow, on_delete=models.CASCADE, related_name="windows")
    number = models.PositiveIntegerField()
    region = models.CharField(max_length=600)
    start = models.DateTimeField()
    end = models.DateTimeField()
    status = models.CharField(max_length=20, blank=True, default="")
    reason = models.TextField(blank=True, default="")
    """Of an inconclusive window, or the error of a failed one."""
    suspects = models.JSONField(default=list)
    """`[{"names": [component, those it cannot be told from], "score", "sure", "summary"}]`, best first."""
    held = models.JSONField(default=list)
    """The confirmed causes that the window held."""

    class Meta:
        ordering = ("number",)
        constraints = (models.UniqueConstraint(fields=("backtest", "number"), name="backtest_window_number"),)
        indexes = (
            models.Index(fields=("backtest", "number"), name="backtest_window_waits", condition=Q(status="")),
        )

    def __str__(self) -> str:
        return f"{self.region} {self.end:%Y-%m-%d %H:%M}"
