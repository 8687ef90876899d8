from django.db import models


class IntegrationKey(models.Model):
    """A machine's way in. Only the hash of the key is kept."""

    name = models.CharField(max_length=100, unique=True)
    digest = models.BinaryField(max_length=32, unique=True)
    scopes = models.JSONField(default=list)
    region = models.CharField(max_length=100, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name
