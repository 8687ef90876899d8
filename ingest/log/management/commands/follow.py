"""`manage.py follow`: run the followers of the log until SIGTERM or SIGINT."""

from __future__ import annotations

import gc
import signal
import threading
from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from ingest import heartbeat
from ingest.db import server_watch
from ingest.log.read import registered_followers, run_followers


class Command(BaseCommand):
    help = "Run the followers of the event log until SIGTERM or SIGINT; the current batch is finished first."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--only", action="append", metavar="NAME", help="run only this follower; repeatable"
        )

    def handle(self, *, only: list[str] | None, **options: object) -> None:
        known = {follower.name: follower for follower in registered_followers()}
        if unknown := set(only or ()) - set(known):
            raise CommandError(
                f"no follower {', '.join(sorted(unknown))}; there are: {', '.join(known) or 'none'}"
            )
        stop = threading.Event()
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        self.stdout.write(f"Following with {', '.join(only or known) or 'no follower'}")
        self.stdout.flush()
        heartbeat.start()
        server_watch.watch()
        # What is loaded by now stays. A batch makes thousands of objects and no circles: a round every few hundred
        # objects would take a quarter of its time.
        gc.collect()
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        run_followers(stop, [known[name] for name in only] if only else None)
