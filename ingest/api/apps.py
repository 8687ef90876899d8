from django.apps import AppConfig


class IngestApiConfig(AppConfig):
    name = "ingest.api"
    label = "ingest_api"
    verbose_name = "Doors"

    def ready(self) -> None:
        from ingest.api import schema  # noqa: F401  (tells the OpenAPI generator about integration keys)
