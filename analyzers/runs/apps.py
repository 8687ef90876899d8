from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "analyzers.runs"
    label = "runs"
    verbose_name = "Analyzer runs"

    def ready(self) -> None:
        from analyzers.runs import data_clock, events  # noqa: F401  (registers event types and the follower)
