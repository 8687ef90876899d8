"""Saved views: ordinary rows. One that is removed stays, so that its removal can be taken back."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models

from incidents.teams.models import Team


class SavedView(models.Model):
    """A tab, a search and an order of the inbox under a name: of one person, or with a team of all its people."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4)
    # None where a file or a key made it, for a team.
    maker = models.ForeignKey(
        settings.AUTH_USER_MODEL, null=True, on_delete=models.CASCADE, related_name="saved_views"
    )
    team = models.ForeignKey(Team, null=True, on_delete=models.CASCADE, related_name="saved_views")
    name = models.CharField(max_length=60)
    # What a team's view is called by in the API and in files.
    slug = models.SlugField(max_length=80, null=True)
    query = models.TextField()
    removed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("name",)
        constraints = (
            models.UniqueConstraint(
                fields=("maker", "name"),
                condition=models.Q(team__isnull=True, removed_at__isnull=True),
                name="one_own_view_per_name",
            ),
            models.UniqueConstraint(
                fields=("team", "name"),
                condition=models.Q(team__isnull=False, removed_at__isnull=True),
                name="one_team_view_per_name",
            ),
            models.UniqueConstraint(
                fields=("slug",),
                condition=models.Q(slug__isnull=False, removed_at__isnull=True),
                name="one_view_per_slug",
            ),
        )

    def __str__(self) -> str:
        return self.name


class DefaultView(models.Model):
    """View that the inbox opens with for a person."""

    person = models.OneToOneField(
        settings.AUTH_USER_MODEL, primary_key=True, on_delete=models.CASCADE, related_name="default_view"
    )
    view = models.ForeignKey(SavedView, on_delete=models.CASCADE, related_name="default_of")
