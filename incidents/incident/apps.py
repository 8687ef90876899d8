from django.apps import AppConfig


class ProjectionsConfig(AppConfig):
    name = "incidents.incident"
    label = "projections"
    verbose_name = "Incidents"
