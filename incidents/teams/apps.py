from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "incidents.teams"
    label = "catalog"
    verbose_name = "Teams and routes"
