"""Data sources: servers that answer queries for the metric of an alert."""

from __future__ import annotations

from django.db import models

from incidents.security.encryption import EncryptedText


class DataSource(models.Model):
    """A server with Prometheus' HTTP API. Configuration, which is not rebuilt from the log."""

    name = models.SlugField(max_length=60, unique=True)
    url = models.TextField()
    external_url = models.TextField(default="", blank=True)
    """The address that its alerts carry (`--web.external-url`), where that is another one."""
    authorization = EncryptedText(default="", blank=True)
    """The value of the header Authorization, such as `Bearer …`; empty for none."""

    class Meta:
        ordering = ("name",)

    def __str__(self) -> str:
        return self.name

    def made(self, href: str) -> bool:
        """Whether an alert's link leads to this server."""
        bases = (self.url.rstrip("/"), self.external_url.rstrip("/"))
        return any(base and f"{href}/".startswith((f"{base}/", f"{base}?")) for base in bases)
