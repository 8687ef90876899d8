"""`manage.py verify_log`: check the hash chains and seals of the event log."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from ingest.log.verify import BadLog, verify


class Command(BaseCommand):
    help = (
        "Check the hash chains and seals of the event log; name the first bad event, if any, and exit with 1."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--expect",
            metavar="SEAL",
            help="a newest seal that an earlier run printed; it must still be there",
        )

    def handle(self, *, expect: str | None, **options: object) -> None:
        try:
            sound = verify(expect)
        except BadLog as bad:
            raise CommandError(f"The log is not sound. {bad}") from None
        self.stdout.write(f"Sound: {sound.events} events in {sound.streams} streams, {sound.seals} seals.")
        if sound.newest_seal:
            self.stdout.write(f"Newest seal: {sound.newest_seal}")
