"""manage.py receive_otlp: OTLP over gRPC, until SIGTERM. `manage.py up` starts it where DOSSIER_OTLP_GRPC_PORT is
set."""

from __future__ import annotations

import signal
import threading
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ingest import heartbeat
from ingest.db import server_watch

TURN = 1.0
"""Seconds between two looks at the server."""
LONGEST_TURN = 10.0


class Command(BaseCommand):
    help = "Receive OpenTelemetry over gRPC: metrics, traces and logs."
    stealth_options = ("shared",)
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--port",
            type=int,
            default=settings.OTLP_GRPC_PORT or 4317,
            help="port to listen on; 0: any free port",
        )

    def handle(self, *args: Any, shared: bool = False, **options: Any) -> None:
        """`shared`: see OtlpServer."""
        from ingest.api.otlp_grpc import OtlpServer, credentials  # grpc is loaded by this process alone

        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        try:
            tls = credentials()
        except OSError as error:
            raise CommandError(f"DOSSIER_OTLP_GRPC_CERTIFICATE cannot be read: {error}") from error
        try:
            receiving = OtlpServer(settings.BIND_ADDRESS, options["port"], tls, shared=shared)
        except OSError as error:
            raise CommandError(f"cannot listen on port {options['port']}: {error}") from error
        heartbeat.start()
        watch = server_watch.watch()
        receiving.start()
        self.stdout.write(f"OTLP over gRPC is received on port {receiving.port}")
        self.stdout.flush()
        while not stop.wait(TURN):
            heartbeat.progress("server", LONGEST_TURN)
        heartbeat.rest("server")
        receiving.stop()
        watch.close()
