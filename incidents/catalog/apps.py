from django.apps import AppConfig


class CatalogConfig(AppConfig):
    name = "incidents.catalog"
    label = "catalog"
    verbose_name = "Teams and routes"
