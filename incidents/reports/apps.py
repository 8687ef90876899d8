from django.apps import AppConfig


class ReportsConfig(AppConfig):
    name = "incidents.reports"
    label = "reports"
    verbose_name = "Reports"

    def ready(self) -> None:
        from incidents.catalog.naming import register_naming
        from incidents.reports import events  # noqa: F401  (registers the event type)
        from incidents.reports.models import about

        register_naming("team", about)
