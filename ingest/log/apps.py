from django.apps import AppConfig


class LogConfig(AppConfig):
    name = "ingest.log"
    label = "log"
    verbose_name = "Event log"

    def ready(self) -> None:
        from ingest.log import events  # noqa: F401  (registers the log's own event type)
