"""Status pages, which people configure, their notices, which follow from the log, and who gets mail of them.

Addresses of subscribers are not in the log: they belong to strangers, who may have them deleted.
"""

from __future__ import annotations

from django.db import models
from django.db.models.functions import Now
from django.utils import timezone

from incidents.domain.status_pages import PublicService, services_in
from incidents.teams.models import Team
from incidents.worker.models import QueuedMail


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
    made_at = models.DateTimeField(default=timezone.now, db_default=Now())
    """Days before have no data, unless a notice was published."""
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


class StatusSubscriber(models.Model):
    """An address that gets mail of each update, once its reader has confirmed it. State, which is not rebuilt."""

    page = models.SlugField(max_length=60, db_index=False)
    address = models.EmailField(max_length=254)
    requested_at = models.DateTimeField()
    confirmed_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ("pk",)
        constraints = (
            models.UniqueConstraint(fields=("page", "address"), name="one_status_subscription_per_address"),
        )

    def __str__(self) -> str:
        return f"{self.address} of {self.page}"


class StatusEmail(QueuedMail):
    """A mail to a subscriber: of update `number` of a notice, or without one the request to confirm.

    A queue, which is not rebuilt.
    """

    subscriber = models.ForeignKey(StatusSubscriber, on_delete=models.CASCADE, related_name="mails")
    notice = models.UUIDField(null=True)
    number = models.PositiveIntegerField(default=0)
    made_at = models.DateTimeField()

    class Meta:
        ordering = ("next_at", "pk")
        constraints = (
            models.UniqueConstraint(
                fields=("subscriber", "notice", "number"), name="one_status_mail_per_update"
            ),
        )
        indexes = (
            models.Index(
                fields=("next_at",),
                condition=models.Q(state__in=("queued", "running")),
                name="status_mails_due",
            ),
            models.Index(fields=("made_at",), name="status_mails_age"),
        )

    def __str__(self) -> str:
        return f"mail {self.pk} to {self.subscriber_id}: {self.state}"
