from django.apps import AppConfig


class CorrelationConfig(AppConfig):
    name = "incidents.suppression"
    label = "correlation"
    verbose_name = "Correlation"

    def ready(self) -> None:
        from incidents.suppression.maintenance import windows_on
        from incidents.teams.references import register_naming

        register_naming("service", windows_on)
