from django.apps import AppConfig


class CorrelationConfig(AppConfig):
    name = "incidents.correlation"
    label = "correlation"
    verbose_name = "Correlation"

    def ready(self) -> None:
        from incidents.catalog.naming import register_naming
        from incidents.correlation.planned import windows_on

        register_naming("service", windows_on)
