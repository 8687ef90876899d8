from django.apps import AppConfig


class TelemetryConfig(AppConfig):
    name = "ingest.telemetry"
    label = "telemetry"
    verbose_name = "Telemetry"

    def ready(self) -> None:
        from ingest.log.copies import register_copy
        from ingest.telemetry import events  # noqa: F401  (registers the event types of telemetry)
        from ingest.telemetry.store.receipts import check_receipts

        register_copy("telemetry receipts", check_receipts)
