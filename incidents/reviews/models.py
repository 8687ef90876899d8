"""Post-incident reviews: ordinary rows. Each change is recorded beside them as what the review was and is."""

from __future__ import annotations

from django.db import models


class Review(models.Model):
    """The review of an incident, which is named by its number: rows of incidents are rebuilt, reviews are not."""

    number = models.BigIntegerField(primary_key=True)
    text = models.TextField()
    """Markdown."""
    actions = models.JSONField(default=list)
    """Objects as `domain.review.Action.as_json` writes them."""
    edition = models.IntegerField(default=1)
    created_at = models.DateTimeField()
    updated_at = models.DateTimeField()
    updated_by = models.TextField()
    published_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("-number",)
