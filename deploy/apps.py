from typing import Any

from django.apps import AppConfig
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.backends.signals import connection_created


class DeployConfig(AppConfig):
    name = "deploy"

    def ready(self) -> None:
        from deploy import celery  # noqa: F401  (whoever sends a task sends it to our broker)

        connection_created.connect(end_forgotten_transactions)


def end_forgotten_transactions(connection: BaseDatabaseWrapper, **_: Any) -> None:
    """A transaction whose process stands still holds back every reader of the log. Where the server lets it do so for
    ever, it ends after a minute; asked for once it is connected, because PgBouncer takes no such option before."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT set_config('idle_in_transaction_session_timeout', '60s', false)"
            " WHERE current_setting('idle_in_transaction_session_timeout') = '0'"
        )
