from django.apps import AppConfig


class DeployConfig(AppConfig):
    name = "deploy"

    def ready(self) -> None:
        from deploy import celery  # noqa: F401  (whoever sends a task sends it to our broker)
