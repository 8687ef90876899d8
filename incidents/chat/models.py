"""Workspaces of a chat service, their messages of incidents, and whose account is whose.

Workspaces and accounts are configuration, messages and receipts a queue's state: none is rebuilt from the log.
"""

from __future__ import annotations

from django.conf import settings
from django.db import models

from incidents.domain.values import DEFAULT_SEVERITY
from incidents.security.encryption import EncryptedText, Lost
from ingest.queries import Position


class ChatWorkspace(models.Model):
    """A Slack workspace with the app installed, or a Mattermost server with the bot. Events before `position` are in
    its messages, or were not wanted."""

    class Platform(models.TextChoices):
        SLACK = "slack", "Slack"
        MATTERMOST = "mattermost", "Mattermost"

    name = models.SlugField(max_length=60, unique=True)
    platform = models.CharField(max_length=20, choices=Platform, default=Platform.SLACK)
    url = models.CharField(max_length=2_000, blank=True, default="")
    """Base address of the Mattermost server; empty for Slack."""
    token = EncryptedText()
    signing_secret = EncryptedText()
    """By which requests are known: of Slack the app's signing secret, of Mattermost the token of the slash command."""
    channel = models.CharField(max_length=40, blank=True, default="")
    """Of incidents of teams that `rooms` does not name; empty: those have no message."""
    rooms = models.JSONField(default=dict)
    """Channel ids by slug of the team."""
    least = models.CharField(max_length=10, default=DEFAULT_SEVERITY)
    """The lowest severity that has a message."""
    active = models.BooleanField(default=True)
    position = models.CharField(max_length=36)
    failures = models.PositiveIntegerField(default=0)
    retry_at = models.DateTimeField(null=True)
    limited_until = models.DateTimeField(null=True)
    """Until then new incidents have no message of their own: there were too many."""
    last_success = models.DateTimeField(null=True)
    error = models.TextField(default="", blank=True)
    """The last failure; empty once a request succeeds."""

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    @property
    def place(self) -> Position:
        return Position.parse(self.position)

    @property
    def readable(self) -> bool:
        """Whether its secrets can be decrypted under the present key."""
        return not (isinstance(self.token, Lost) or isinstance(self.signing_secret, Lost))


class ChatMessage(models.Model):
    """The message of an incident in a channel; its thread has the replies of events up to `version`."""

    workspace = models.ForeignKey(ChatWorkspace, on_delete=models.CASCADE, related_name="messages")
    incident = models.UUIDField()
    channel = models.CharField(max_length=40)
    ts = models.CharField(max_length=40)
    """By which the service names a message of a channel."""
    version = models.PositiveIntegerField()
    digest = models.CharField(max_length=64)
    """Of what it shows; an update that would show the same is not sent."""
    posted_at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=("workspace", "incident", "channel"), name="one_chat_message_per_incident"
            ),
        )
        indexes = (
            models.Index(fields=("workspace", "channel", "ts"), name="chat_message_thread"),
            models.Index(fields=("workspace", "posted_at"), name="chat_message_posted"),
        )

    def __str__(self) -> str:
        return f"{self.incident} in {self.channel} of {self.workspace}"


class ChatAccount(models.Model):
    """An account of the chat service, and the person of Dossier who acts through it."""

    workspace = models.ForeignKey(ChatWorkspace, on_delete=models.CASCADE, related_name="accounts")
    chat_user = models.CharField(max_length=255)
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    linked_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("workspace", "chat_user"), name="one_person_per_chat_account"),
        )

    def __str__(self) -> str:
        return f"{self.chat_user} of {self.workspace}"


class ChatReceipt(models.Model):
    """A request that was carried out or refused: the same one again does nothing. Deleted when no request of that age
    is taken."""

    workspace = models.ForeignKey(ChatWorkspace, on_delete=models.CASCADE, related_name="+")
    key = models.CharField(max_length=100)
    at = models.DateTimeField()

    class Meta:
        constraints = (
            models.UniqueConstraint(fields=("workspace", "key"), name="one_receipt_per_chat_request"),
        )
        indexes = (models.Index(fields=("at",), name="chat_receipt_age"),)

    def __str__(self) -> str:
        return self.key
