"""Reports as they were produced: a projection of `report.produced`."""

from __future__ import annotations

from django.db import models


class DailyReport(models.Model):
    """The report of one day (UTC), word for word as the log has it."""

    day = models.DateField(primary_key=True)
    body = models.JSONField()
    position = models.CharField(max_length=64)

    class Meta:
        ordering = ("-day",)

    def __str__(self) -> str:
        return self.day.isoformat()
