"""Status pages, which people configure, and their notices, which follow from the log."""

from __future__ import annotations

from django.db import models

from incidents.domain.status_pages import PublicService, services_in
from incidents.teams.models import Team


class StatusPage(models.Model):
    """A page at `/status/<slug>`. Configuration, which is not rebuilt from the log."""

    slug = models.SlugField(max_length=60, unique=True)
    """Also what notices name their page by: a page that is made once more has them again."""
    name = models.CharField(max_length=120)
    description = models.TextField(blank=True, default="")
    public = models.BooleanField(default=False)
    """Whether it is shown without signing in."""
    team = models.ForeignKey(Team, null=True, on_delete=models.PROTECT, related_name="+")
    services = models.JSONField(default=list)
    """Objects as `PublicService.as_json` writes them, in the order of the page."""
    version = models.BigIntegerField(default=0)
    """Rises with each change of the page or of a notice on it, by which caches know it."""

    class Meta:
        ordering = ("slug",)

    def __str__(self) -> str:
        return self.name

    @property
    def entries(self) -> list[PublicService]:
        return services_in(self.services)


class StatusNotice(models.Model):
    """A notice as it stands after event `version` of its stream."""

    id = models.UUIDField(primary_key=True)
    page = models.SlugField(max_length=60, db_index=False)
    kind = models.CharField(max_length=20)
    title = models.TextField()
    incident = models.UUIDField(null=True)
    updates = models.JSONField()
    """Objects as `StatusUpdate.as_json` writes them, oldest first."""
    began_at = models.DateTimeField()
    ended_at = models.DateTimeField(null=True)
    withdrawn = models.BooleanField(default=False)
    version = models.PositiveIntegerField()

    class Meta:
        ordering = ("-began_at", "id")
        indexes = (
            models.Index(fields=("page", "-began_at"), name="status_notices_of_page"),
            models.Index(
                fields=("incident",),
                condition=models.Q(incident__isnull=False),
                name="status_notices_of_incident",
            ),
        )

    def __str__(self) -> str:
        return f"{self.title} on {self.page}"
