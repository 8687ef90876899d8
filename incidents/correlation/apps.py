from django.apps import AppConfig


class CorrelationConfig(AppConfig):
    name = "incidents.correlation"
    label = "correlation"
    verbose_name = "Correlation"
