"""manage.py create_key NAME --scope SCOPE [--scope …] [--region REGION]: print a new integration key,
once."""

from __future__ import annotations

from argparse import ArgumentParser

from django.core.management.base import BaseCommand, CommandError

from ingest.api import keys


class Command(BaseCommand):
    help = "Make an integration key and print it. It is kept as a hash and cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the key is called in events and logs")
        parser.add_argument(
            "--scope", action="append", required=True, choices=keys.SCOPES, help="may be given again"
        )
        parser.add_argument("--region", default="", help="region of rows that name none (default: default)")

    def handle(self, *args: object, **options: object) -> None:
        scopes, region = options["scope"], str(options["region"])
        assert isinstance(scopes, list)
        try:
            self.stdout.write(keys.create(str(options["name"]), scopes, region))
        except ValueError as error:
            raise CommandError(str(error)) from error
