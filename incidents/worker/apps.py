from django.apps import AppConfig


class WorkerConfig(AppConfig):
    name = "incidents.worker"
    label = "worker"
    verbose_name = "Worker"
