from django.apps import AppConfig


class RunsConfig(AppConfig):
    name = "analyzers.runs"
    label = "runs"
    verbose_name = "Analyzer runs"

    def ready(self) -> None:
        # registers event types, the follower and the system check
        from analyzers.runs import execution, scheduler, system_checks  # noqa: F401
