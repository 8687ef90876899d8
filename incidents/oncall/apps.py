from django.apps import AppConfig


class OncallConfig(AppConfig):
    name = "incidents.oncall"
    label = "oncall"
    verbose_name = "On call"
