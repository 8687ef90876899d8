from django.apps import AppConfig


class TeamsConfig(AppConfig):
    name = "incidents.teams"
    label = "teams"
    verbose_name = "Teams and routes"
