"""Contact methods (ordinary rows that people edit), and deliveries.

Addresses may hold secrets (a token of a chat, a password): nothing outside this drawer and its sender reads them.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from incidents.domain.notifications.delivery import TITLES
from incidents.security.encryption import EncryptedText

CALL, OVER = "call", "over"
"""Subject of a notification: somebody is needed, or an incident of which they were notified is over."""


class ContactMethod(models.Model):
    """A way to reach a person, or without a person a channel that a team shares."""

    user = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="contact_methods"
    )
    name = models.SlugField(max_length=60)
    kind = models.CharField(max_length=8, choices=tuple(TITLES.items()))
    address = EncryptedText()
    secret = EncryptedText(blank=True, default="")
    """Key that signs a webhook's messages."""
    most = models.PositiveIntegerField(null=True)
    """Messages within `span` seconds; None: as many as there are."""
    span = models.PositiveIntegerField(default=900)
    address_since = models.DateTimeField(null=True)
    """Time of the address's last change; None: it is the first one. Older deliveries say nothing about it."""
    verified_at = models.DateTimeField(null=True)
    """Time at which a test message was last accepted."""

    class Meta:
        ordering = ("user", "name")
        constraints = (
            models.UniqueConstraint(fields=("user", "name"), name="one_method_per_name"),
            models.UniqueConstraint(
                fields=("name",), condition=models.Q(user__isnull=True), name="one_channel_per_name"
            ),
        )

    def __str__(self) -> str:
        return f"{self.name} ({self.kind})"


class Preferences(models.Model):
    """Notification preferences of one person; without a row the defaults hold (`domain.notifications`)."""

    user = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="preferences"
    )
    rules = models.JSONField(default=list)
    """`[{"severities": [], "urgent": null, "delay": 0, "method": "mail"}]`."""
    quiet = models.JSONField(null=True)
    """`{"zone": "Europe/Berlin", "start": "22:00", "end": "07:00"}`."""
    bundle_seconds = models.PositiveIntegerField(default=15)

    def __str__(self) -> str:
        return f"how {self.user} is reached"


class Notification(models.Model):
    """Notification of a person (or an address) of an incident, with the reason. `key` makes it happen once.

    `state`: new (no plan yet), going, done; then `outcome` is sent, stopped or given_up, and `ended_why` says why.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    key = models.TextField(unique=True)
    about = models.CharField(max_length=4, default=CALL, db_default=CALL)
    end_notified = models.BooleanField(default=False, db_default=False)
    """Of a call: whether the notice of the end was queued, or is not needed."""
    person = models.TextField(null=True)
    kind = models.CharField(max_length=8, default="")
    """Of an address without a person."""
    address_ref = models.TextField(default="")
    """The name of a shared channel, or the address itself: then it may be secret."""
    incident = models.UUIDField()
    team = models.TextField(default="", db_default="")
    """Team that has the incident when it is called for; empty where none was named."""
    why = models.TextField()
    urgent = models.BooleanField(default=False)
    cause = models.TextField(null=True)
    trace = models.TextField(null=True)
    made_at = models.DateTimeField()
    state = models.CharField(max_length=5, default="new")
    outcome = models.CharField(max_length=8, default="")
    ended_at = models.DateTimeField(null=True)
    ended_why = models.TextField(default="")

    class Meta:
        ordering = ("made_at", "id")
        indexes = (
            models.Index(fields=("made_at",), condition=models.Q(state="new"), name="notifications_new"),
            models.Index(fields=("ended_at",), condition=models.Q(state="done"), name="notifications_ended"),
            models.Index(
                fields=("incident",),
                condition=models.Q(state="done", outcome="sent", end_notified=False),
                name="notifications_to_end",
            ),
            models.Index(fields=("incident", "made_at"), name="notifications_of_incident"),
            models.Index(fields=("person", "made_at"), name="notifications_of_person"),
        )

    def __str__(self) -> str:
        return self.key


class NotificationDelivery(models.Model):
    """One method of one notification: when it is due, how often it was tried, what became of it.

    `state`: waiting, sent, stopped or given_up. Claimed while `lease_until` is in the future; then `message` is the id
    of the message on the wire, which one that is sent again keeps.
    """

    notification = models.ForeignKey(Notification, on_delete=models.CASCADE, related_name="deliveries")
    place = models.PositiveSmallIntegerField()
    source = models.CharField(max_length=7)
    """`method` (of the person, or a channel), `account` (the address of their account) or `direct`."""
    method = models.ForeignKey(ContactMethod, null=True, on_delete=models.SET_NULL, related_name="+")
    label = models.TextField()
    """Name for people: never the address."""
    kind = models.CharField(max_length=8)
    queue = models.TextField()
    """Messages of one queue go through the same endpoint and may block each other, never those of another."""
    at = models.DateTimeField()
    """Planned time."""
    next_at = models.DateTimeField()
    attempts = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True)
    holder = models.IntegerField(null=True)
    """Number of the process that claimed it (`Process`), where that holds its lock."""
    message = models.UUIDField(null=True)
    state = models.CharField(max_length=8, default="waiting")
    delay_reason = models.TextField(default="")
    """Reason of a delay, also of a past one."""
    why = models.TextField(default="")
    """Last answer, or the reason of its end."""
    receipt_error = models.TextField(default="", db_default="")
    """Reason of a failure that a provider reported before its acceptance was recorded."""
    ended_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("notification", "place")
        constraints = (
            models.UniqueConstraint(fields=("notification", "place"), name="one_delivery_per_place"),
        )
        indexes = (
            models.Index(fields=("next_at",), condition=models.Q(state="waiting"), name="deliveries_due"),
            models.Index(fields=("method", "ended_at"), name="deliveries_of_method"),
            models.Index(fields=("message",), name="deliveries_of_message"),
        )

    def __str__(self) -> str:
        return f"{self.notification_id} by {self.label}: {self.state}"


class ProviderReceipt(models.Model):
    """A request of a telephony provider that was carried out or refused: the same one again does nothing. Deleted after
    two days; not rebuilt from the log."""

    key = models.CharField(max_length=150, unique=True)
    at = models.DateTimeField()

    class Meta:
        indexes = (models.Index(fields=("at",), name="provider_receipt_age"),)

    def __str__(self) -> str:
        return self.key


class PushKey(models.Model):
    """One row: the key pair that signs web push messages (`incidents.notifications.push_key`)."""

    private = EncryptedText()
    public = models.TextField()

    def __str__(self) -> str:
        return self.public


class KeyCheck(models.Model):
    """One row: a text sealed under the installation's key, by which a process knows whether its key is that one."""

    text = models.BinaryField()

    def __str__(self) -> str:
        return "the installation's key"
