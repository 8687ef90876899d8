"""The app as the offline commands see it: commands alone, no event types registered, no followers."""

from django.apps import AppConfig


class OfflineConfig(AppConfig):
    name = "analyzers.runs"
    label = "runs"
