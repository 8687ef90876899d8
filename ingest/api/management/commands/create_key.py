"""manage.py create_key NAME --scope SCOPE [--scope …] [--region REGION] [--mapping MAPPING]: print a new
integration key, once."""

from __future__ import annotations

from argparse import ArgumentParser
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from ingest.api import keys
from ingest.doors.json_body import read_object
from ingest.doors.mappings import READY


class Command(BaseCommand):
    help = "Make an integration key and print it. It is kept as a hash and cannot be shown again."

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="what the key is called in events and logs")
        parser.add_argument(
            "--scope", action="append", required=True, choices=keys.SCOPES, help="may be given again"
        )
        parser.add_argument("--region", default="", help="region of rows that name none (default: default)")
        parser.add_argument(
            "--mapping",
            help=f"how its generic door reads payloads: {', '.join(READY)} (see `manage.py sender`) or a file of JSON",
        )

    def handle(self, *args: object, **options: object) -> None:
        scopes, region = options["scope"], str(options["region"])
        assert isinstance(scopes, list)
        try:
            mapping = _mapping(options["mapping"])
            self.stdout.write(keys.create(str(options["name"]), scopes, region, mapping))
        except (ValueError, OSError) as error:
            raise CommandError(str(error)) from error


def _mapping(told: object) -> Mapping[str, Any] | None:
    if told is None:
        return None
    return READY[str(told)].mapping if told in READY else read_object(Path(str(told)).read_bytes())
