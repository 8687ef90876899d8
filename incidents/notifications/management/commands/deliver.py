"""`manage.py deliver`: tell people of incidents, and run what watches timers, until SIGTERM or SIGINT."""

from __future__ import annotations

import signal
import threading

from django.core.management.base import BaseCommand, CommandError

from incidents.notifications.dispatcher import run
from incidents.notifications.key import WrongKeyError
from incidents.worker.memory import share_pools
from incidents.worker.sweeps import registered_sweeps
from ingest.commands import heartbeat, watch_database

FIRST_ANSWER = 15.0
"""Seconds that the start waits for the time by Postgres' clock."""


class Command(BaseCommand):
    help = "Send notifications and run timers until SIGTERM or SIGINT."

    def handle(self, **options: object) -> None:
        share_pools()
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        self.stdout.write(f"Delivering; sweeps: {', '.join(registered_sweeps()) or 'none'}")
        self.stdout.flush()
        heartbeat.start()
        watch = watch_database()
        watch.first.wait(FIRST_ANSWER)  # nothing is due before the time is known
        try:
            run(stop)
        except WrongKeyError as error:
            raise CommandError(f"no notifications are delivered: {error}.") from None
        finally:
            watch.close()
