"""Webhooks, how far each has come in the log, and what it could not deliver."""

from __future__ import annotations

from datetime import datetime

from django.db import models

from incidents.domain.webhooks import EventFilter, Health
from incidents.security import encryption
from ingest.queries import Position


class Webhook(models.Model):
    """An address that receives the events of incidents, and its place in the log.

    All events before `position` were delivered, were not wanted, or are in `WebhookRetry` or `WebhookDeadLetter`.
    """

    name = models.SlugField(max_length=60, unique=True)
    url = models.TextField()
    teams = models.JSONField(default=list)
    severities = models.JSONField(default=list)
    types = models.JSONField(default=list)
    active = models.BooleanField(default=True)
    position = models.CharField(max_length=36)
    replayed_upto = models.CharField(max_length=36, default="", blank=True)
    """Position at the last replay: events before it are sent again."""
    secret = models.BinaryField()
    previous_secret = models.BinaryField(null=True)
    previous_until = models.DateTimeField(null=True)
    """Until then deliveries are signed with the secret before, too."""
    failures = models.PositiveIntegerField(default=0)
    failing_since = models.DateTimeField(null=True)
    retry_at = models.DateTimeField(null=True)
    last_success = models.DateTimeField(null=True)
    disabled_reason = models.TextField(default="", blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def wanted(self) -> EventFilter:
        return EventFilter(
            frozenset(self.teams), frozenset(self.severities), frozenset(self.types), self.name
        )

    @property
    def health(self) -> Health:
        return Health(self.failures, self.failing_since, self.retry_at)

    @property
    def place(self) -> Position:
        return Position.parse(self.position)

    def secrets(self, now: datetime) -> list[str]:
        """Those that deliveries are signed with now, the newest first. Raises DecryptionError."""
        secrets = [self.secret]
        if self.previous_secret is not None and self.previous_until is not None and self.previous_until > now:
            secrets.append(self.previous_secret)
        return [encryption.decrypt(bytes(one)) for one in secrets]


class WebhookRetry(models.Model):
    """An incident whose next event a webhook could not deliver: its later ones wait, those of other incidents
    do not.
    """

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="retries")
    stream = models.CharField(max_length=255)
    version = models.PositiveIntegerField()
    """Of the event that is to be delivered next."""
    position = models.CharField(max_length=36)
    since = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    next_at = models.DateTimeField()
    error = models.TextField(default="", blank=True)

    class Meta:
        constraints = (models.UniqueConstraint(fields=("webhook", "stream"), name="one_retry_per_stream"),)
        indexes = (models.Index(fields=("webhook", "next_at"), name="webhook_retry_due"),)

    def __str__(self) -> str:
        return f"{self.stream}@{self.version} for {self.webhook}"


class WebhookDeadLetter(models.Model):
    """An event that a webhook will not deliver any more, and why; a replay tells it again."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="dead_letters")
    event = models.CharField(max_length=300)
    type = models.CharField(max_length=100)
    incident = models.PositiveBigIntegerField()
    position = models.CharField(max_length=36)
    at = models.DateTimeField()
    reason = models.TextField()

    class Meta:
        ordering = ("-id",)
        constraints = (
            models.UniqueConstraint(fields=("webhook", "event"), name="one_dead_letter_per_event"),
        )

    def __str__(self) -> str:
        return f"{self.event} for {self.webhook}: {self.reason}"


class WebhookAttempt(models.Model):
    """One of the last deliveries of a webhook, as its page shows them."""

    webhook = models.ForeignKey(Webhook, on_delete=models.CASCADE, related_name="attempts")
    event = models.CharField(max_length=300)
    type = models.CharField(max_length=100)
    incident = models.PositiveBigIntegerField(null=True)
    at = models.DateTimeField()
    milliseconds = models.PositiveIntegerField()
    status = models.PositiveIntegerField(null=True)
    taken = models.BooleanField()
    answer = models.TextField(default="", blank=True)
    """The beginning of the answer, or why there was none."""

    class Meta:
        ordering = ("-id",)

    def __str__(self) -> str:
        return f"{self.event} for {self.webhook} at {self.at}"
