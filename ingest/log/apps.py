from django.apps import AppConfig


class LogConfig(AppConfig):
    name = "ingest.log"
    label = "log"
    verbose_name = "Event log"

    def ready(self) -> None:
        from ingest.log import events  # noqa: F401  (registers the log's own event type)
        from ingest.log.copies import register_copy
        from ingest.log.heads import check_heads, rebuild_heads

        register_copy("heads of streams", check_heads, rebuild_heads)
