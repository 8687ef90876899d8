from django.apps import AppConfig


class AlertsConfig(AppConfig):
    name = "ingest.alerts"
    label = "alerts"
    verbose_name = "Alerts"

    def ready(self) -> None:
        from ingest.alerts import events  # noqa: F401  (registers the event type of alerts)
