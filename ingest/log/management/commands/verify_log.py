"""`manage.py verify_log`: check the hash chains and seals of the event log."""

from __future__ import annotations

from argparse import ArgumentParser
from pathlib import Path

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ingest.log.verify import LogIntegrityError, verify


class Command(BaseCommand):
    help = (
        "Check the hash chains and seals of the event log; print the first bad event, if any, and"
        " exit with 1."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--expect",
            metavar="SEAL",
            help="newest seal printed by an earlier run, which must still exist",
        )

        parser.add_argument(
            "--seals",
            type=Path,
            default=None,
            metavar="FILE",
            help="seals noted outside (default: DOSSIER_SEAL_FILE)",
        )
        parser.add_argument(
            "--without-seals",
            action="store_true",
            help="do not compare with seals noted outside; a truncated log then goes undetected",
        )

    def handle(
        self, *, expect: str | None, seals: Path | None, without_seals: bool, **options: object
    ) -> None:
        if seals is not None and not seals.exists():
            raise CommandError(f"There is no file {seals}: --seals names the file of seals noted outside.")
        noted_in = None if without_seals else seals or settings.SEAL_FILE
        roots = settings.SEAL_TSA_CERTIFICATES
        try:
            sound = verify(expect, noted_in=noted_in, trusted=Path(roots) if roots else None)
        except LogIntegrityError as bad:
            raise CommandError(f"The log is not sound. {bad}") from None
        except (OSError, ValueError) as error:
            raise CommandError(
                f"The log could not be compared with what was noted outside: {error}"
            ) from None
        self.stdout.write(f"Sound: {sound.events} events in {sound.streams} streams, {sound.seals} seals.")
        for name, count in sound.copies.items():
            self.stdout.write(f"Equal to the log: {count} {name}.")
        if stamps := sound.timestamps:
            self.stdout.write(
                f"Timestamps: {len(stamps)} of seals, the newest of {stamps[-1].at:%Y-%m-%d %H:%M:%SZ}"
                f" by {stamps[-1].authority}."
            )
        for remark in sound.remarks:
            self.stdout.write(f"Look at: {remark}.")
        for line in sound.unknown:
            self.stdout.write(line)
        if sound.newest_seal:
            self.stdout.write(f"Newest seal: {sound.newest_seal}")
