"""Post-incident reviews: ordinary rows. Each change is recorded beside them as what the review was and is."""

from __future__ import annotations

from django.db import models

from incidents.worker.models import QueuedMail


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


class ActionReminder(QueuedMail):
    """A mail to the owner of an action on the day on which it is due. A queue, which is not rebuilt."""

    review = models.ForeignKey(Review, on_delete=models.CASCADE, related_name="reminders")
    action = models.PositiveIntegerField()
    due = models.DateField()

    class Meta:
        ordering = ("next_at", "pk")
        constraints = (
            models.UniqueConstraint(fields=("review", "action", "due"), name="one_reminder_per_due_day"),
        )
        indexes = (models.Index(fields=("state", "next_at"), name="action_reminders_due"),)

    def __str__(self) -> str:
        return f"action {self.action} of the review of {self.review_id}, due {self.due}: {self.state}"
