import threading

from django.apps import AppConfig


class DeployConfig(AppConfig):
    name = "deploy"

    def ready(self) -> None:
        from deploy import celery  # noqa: F401  (whoever sends a task sends it to our broker)
        from incidents.worker.loops import register_loop

        register_loop("seals", note_seals)
        register_loop("dead man's ping", keep_pinging)


def note_seals(stop: threading.Event) -> None:
    from deploy.observability import outside  # in the process that runs it only: it imports much

    outside.note_seals(stop)


def keep_pinging(stop: threading.Event) -> None:
    from deploy.observability import outside

    outside.keep_pinging(stop)
