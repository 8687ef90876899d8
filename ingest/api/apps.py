from django.apps import AppConfig


class IngestApiConfig(AppConfig):
    name = "ingest.api"
    label = "ingest_api"
    verbose_name = "Inbound API"
