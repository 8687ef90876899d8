from django.apps import AppConfig


class ProjectionsConfig(AppConfig):
    name = "incidents.projections"
    label = "projections"
    verbose_name = "Incidents"
