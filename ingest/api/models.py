from django.db import models


class IntegrationKey(models.Model):
    """A machine's way in. Only the hash of the key is kept, and of the one before until it is replaced everywhere."""

    name = models.CharField(max_length=100, unique=True)
    digest = models.BinaryField(max_length=32, unique=True)
    scopes = models.JSONField(default=list)
    region = models.CharField(max_length=100, blank=True)
    kinds = models.JSONField(default=list)
    """Telemetry kinds that it may send; empty for all."""
    endpoints = models.JSONField(default=list)
    """Alert endpoints that it may use; empty for all."""
    mapping = models.JSONField(null=True, default=None)
    """Mapping of the generic endpoint's payloads; None for the built-in mapping."""
    previous_digest = models.BinaryField(max_length=32, null=True, unique=True)
    previous_until = models.DateTimeField(null=True)
    """After a rotation the key before is good until then."""
    last_used_at = models.DateTimeField(null=True)
    created_at = models.DateTimeField(auto_now_add=True)
    expires_at = models.DateTimeField(null=True, blank=True)
    """From then on it is refused; None for never."""
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name


class Rejection(models.Model):
    """Refusals of a key at an endpoint: the time and reason of the last, and the number of all. Written by
    `refusals.note`.
    """

    integration = models.CharField(max_length=100)
    endpoint = models.CharField(max_length=100)
    status = models.PositiveSmallIntegerField()
    reason = models.TextField()
    times = models.BigIntegerField(default=1)
    at = models.DateTimeField()

    class Meta:
        db_table = "integration_rejection"
        ordering = ("-at",)
        constraints = (
            models.UniqueConstraint(fields=("integration", "endpoint"), name="one_rejection_per_endpoint"),
        )

    def __str__(self) -> str:
        return f"{self.integration} at {self.endpoint}: {self.status}"
