from django.apps import AppConfig


class IncidentConfig(AppConfig):
    name = "incidents.incident"
    label = "incident"
    verbose_name = "Incidents"
