"""Changes of the configuration in a form that can be searched; made of the log, and made again from it."""

from __future__ import annotations

from django.db import models


class Change(models.Model):
    """A `configuration.changed` of the log."""

    position = models.CharField(max_length=36, unique=True)
    kind = models.CharField(max_length=100)
    key = models.TextField()
    actor = models.CharField(max_length=300)
    at = models.DateTimeField()
    before = models.JSONField(null=True)
    after = models.JSONField(null=True)

    class Meta:
        ordering = ("-position",)
        indexes = (
            models.Index(fields=("kind", "-position"), name="change_by_kind"),
            models.Index(fields=("actor", "-position"), name="change_by_actor"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.key} by {self.actor}"
