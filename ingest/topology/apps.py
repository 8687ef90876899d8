from django.apps import AppConfig


class TopologyConfig(AppConfig):
    name = "ingest.topology"
    label = "topology"
    verbose_name = "Topology"
