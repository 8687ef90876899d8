"""manage.py receive_mail: the endpoint of mail, until SIGTERM. `manage.py up` starts it where
DOSSIER_INBOUND_EMAIL_PORT is set."""

from __future__ import annotations

import asyncio
import socket
import ssl
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ingest import heartbeat
from ingest.api import mail
from ingest.db import server_watch


class Command(BaseCommand):
    help = "Receive alerts by mail: an SMTP server that answers 250 after the commit."
    stealth_options = ("opened",)
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port",
            type=int,
            default=settings.INBOUND_EMAIL_PORT or 2525,
            help="port to listen on; 0: any free port",
        )

    def handle(self, *args: Any, opened: socket.socket | None = None, **options: Any) -> None:
        """Serve on `opened`, a socket that is bound, else at the port."""
        try:
            tls = mail.certificate()
        except (OSError, ssl.SSLError) as error:
            raise CommandError(f"DOSSIER_INBOUND_EMAIL_CERTIFICATE cannot be read: {error}") from error
        heartbeat.start()
        watch = server_watch.watch()
        try:
            asyncio.run(mail.serve(opened or (settings.BIND_ADDRESS, options["port"]), tls, self.say))
        except OSError as error:
            raise CommandError(f"cannot listen on port {options['port']}: {error}") from error
        finally:
            watch.close()

    def say(self, port: int) -> None:
        self.stdout.write(f"mail is received on port {port}")
        self.stdout.flush()
