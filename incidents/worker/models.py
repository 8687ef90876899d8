"""State of `manage.py deliver`, not of incidents: not rebuilt from the log."""

from __future__ import annotations

from django.db import models
from django.utils import timezone


class Process(models.Model):
    """A process that sends and may have claimed something: one whose lock (`leader`) is gone for long is gone."""

    number = models.IntegerField(primary_key=True)

    def __str__(self) -> str:
        return f"deliverer {self.number}"


class Heartbeat(models.Model):
    """Last sign of life of a part of `manage.py deliver` at `at`, and the work of its last round."""

    name = models.CharField(max_length=80, primary_key=True)
    at = models.DateTimeField(default=timezone.now)
    did = models.PositiveIntegerField(default=0)
    error = models.TextField(blank=True, default="")

    def __str__(self) -> str:
        return f"{self.name} at {self.at}"


class QueuedMail(models.Model):
    """A mail that waits, is being sent under a lease, was sent, or was refused for good (`error` says why)."""

    state = models.CharField(max_length=8, default="queued")
    next_at = models.DateTimeField(default=timezone.now)
    """The next attempt."""
    attempts = models.PositiveIntegerField(default=0)
    claim = models.UUIDField(null=True)
    lease_until = models.DateTimeField(null=True)
    sent_at = models.DateTimeField(null=True)
    error = models.TextField(blank=True, default="")

    class Meta:
        abstract = True
