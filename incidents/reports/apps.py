from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "incidents.reports"
    label = "reports"
    verbose_name = "Reports"

    def ready(self) -> None:
        from incidents.reports import events  # noqa: F401  (registers the event type)
        from incidents.reports.models import about
        from incidents.teams.references import register_naming

        register_naming("team", about)
