from django.apps import AppConfig


class SavedConfig(AppConfig):
    name = "incidents.saved"
    label = "saved"
    verbose_name = "Saved views"
