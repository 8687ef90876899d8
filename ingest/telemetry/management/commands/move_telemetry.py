"""`manage.py move_telemetry`: move old telemetry from Postgres into Parquet files now."""

from __future__ import annotations

from argparse import ArgumentParser
from datetime import timedelta

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from ingest.db import database
from ingest.db.storage import ColdStorageError
from ingest.telemetry.cold.move import move_old
from ingest.telemetry.cold.status import cold_status


class Command(BaseCommand):
    help = "Move telemetry older than DOSSIER_TELEMETRY_HOT into files; a sweep does this every five minutes."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--older-than",
            type=float,
            metavar="HOURS",
            help="move telemetry older than this number of hours (default: DOSSIER_TELEMETRY_HOT)",
        )
        parser.add_argument("--status", action="store_true", help="move nothing; list the files")

    def handle(self, *, older_than: float | None, status: bool, **options: object) -> None:
        if not status:
            if not settings.TELEMETRY_COLD:
                raise CommandError(
                    "Nothing moved: DOSSIER_TELEMETRY_COLD is not set; set it to a directory or a bucket."
                )
            if older_than is not None and not 0 < older_than < 1e6:
                raise CommandError(
                    f"--older-than {older_than} is not a number of hours above 0 and below a million."
                )
            try:
                moved = move_old(database.now(), None if older_than is None else timedelta(hours=older_than))
            except (ColdStorageError, OSError) as error:
                raise CommandError(f"{error}; rows that had not moved are still in Postgres") from error
            self.stdout.write(
                f"{moved.rows:,} rows moved into {moved.files:,} files of {moved.bytes:,} bytes;"
                f" {moved.deleted:,} files deleted after retention"
            )
        now = cold_status(database.now())
        self.stdout.write(f"In files: {now.rows:,} rows in {now.files:,} files, {now.bytes:,} bytes")
