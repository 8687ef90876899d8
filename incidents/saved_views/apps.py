from django.apps import AppConfig


class SavedConfig(AppConfig):
    name = "incidents.saved_views"
    label = "saved"
    verbose_name = "Saved views"
