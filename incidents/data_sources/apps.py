from django.apps import AppConfig


class DataSourcesConfig(AppConfig):
    name = "incidents.data_sources"
    label = "data_sources"
    verbose_name = "Data sources"
