from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    name = "ingest.telemetry"
    label = "telemetry"
    verbose_name = "Telemetry"

    def ready(self) -> None:
        from ingest.telemetry import events  # noqa: F401  (registers the event types of telemetry)
