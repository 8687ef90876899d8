from django.apps import AppConfig


class ProjectionsConfig(AppConfig):
    name = "incidents.projections"
    label = "projections"
    verbose_name = "Incidents"

    def ready(self) -> None:
        from incidents import events, reactors

        events.register()
        reactors.register()
