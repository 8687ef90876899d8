from django.apps import AppConfig


class SuppressionConfig(AppConfig):
    name = "incidents.suppression"
    label = "suppression"
    verbose_name = "Suppression"

    def ready(self) -> None:
        from incidents.suppression.suppressor import windows_on
        from incidents.teams.references import register_naming

        register_naming("service", windows_on)
