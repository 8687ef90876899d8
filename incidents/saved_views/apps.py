from django.apps import AppConfig


class SavedViewsConfig(AppConfig):
    name = "incidents.saved_views"
    label = "saved_views"
    verbose_name = "Saved views"
