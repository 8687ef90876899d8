import threading

from django.apps import AppConfig
from django.core import checks

from deploy import env


class DeployConfig(AppConfig):
    name = "deploy"

    def ready(self) -> None:
        from deploy import celery  # noqa: F401  (so that tasks are sent to our broker)
        from incidents.worker.parts import register_loop

        checks.register(check_variables)
        register_loop("seals", note_seals)
        register_loop("dead man's ping", keep_pinging)


def check_variables(**_: object) -> list[checks.CheckMessage]:
    return [checks.Warning(line, id="deploy.W001") for line in env.unread()]


def note_seals(stop: threading.Event) -> None:
    from deploy.observability import outside  # in the process that runs it only: it imports much

    outside.note_seals(stop)


def keep_pinging(stop: threading.Event) -> None:
    from deploy.observability import outside

    outside.keep_pinging(stop)
