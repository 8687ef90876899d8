"""`manage.py move_log`: move old parts of the log from Postgres into Parquet files now."""

from __future__ import annotations

from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ingest.db import database
from ingest.db.storage import ColdStorageError
from ingest.log.move import move_old, status


class Command(BaseCommand):
    help = (
        "Move full parts of the log into files, but for the newest ones; a sweep does so every five minutes."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--keep", type=int, metavar="PARTS", help="full parts that stay (default: DOSSIER_LOG_HOT)"
        )
        parser.add_argument("--status", action="store_true", help="move nothing; count the files")

    def handle(self, *, keep: int | None, status: bool, **options: object) -> None:
        if not status:
            self._move(keep)
        self.stdout.write(_counted(keep))

    def _move(self, keep: int | None) -> None:
        if not settings.TELEMETRY_COLD:
            raise CommandError(
                "Nothing moved: DOSSIER_TELEMETRY_COLD is not set; name a directory or a bucket."
            )
        if keep is not None and keep < 1:
            raise CommandError(f"--keep {keep} is not a number of parts above 0.")
        if keep is None and not settings.LOG_HOT:
            raise CommandError("Nothing moved: DOSSIER_LOG_HOT is 0; say how many parts stay, or use --keep.")
        try:
            moved = move_old(database.now(), keep)
        except (ColdStorageError, OSError) as error:
            raise CommandError(f"{error}; events that had not moved are still in Postgres") from error
        self.stdout.write(
            f"{moved.events:,} events in {moved.parts:,} parts moved into files of {moved.bytes:,} bytes;"
            f" {moved.dropped:,} parts left Postgres"
        )


def _counted(keep: int | None) -> str:
    now = status(keep)
    unsealed = f", {now.unsealed:,} of them without a seal" if now.unsealed else ""
    return (
        f"In files: {now.events:,} events in {now.parts:,} parts, {now.bytes:,} bytes; {now.overdue:,} parts to move"
        f"{unsealed}"
    )
