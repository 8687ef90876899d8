from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "analyzers.runs"
    label = "runs"
    verbose_name = "Analyzer runs"

    def ready(self) -> None:
        # registers event types, the follower and the system check
        from analyzers.runs import data_clock, events, system_checks  # noqa: F401
