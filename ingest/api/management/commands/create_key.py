"""manage.py create_key NAME --scope SCOPE [--scope …] [--region REGION] [--expires WHEN] [--mapping MAPPING]:
print a new integration key, once."""

from __future__ import annotations

import re
from argparse import ArgumentParser
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.utils import timezone

from ingest.api import keys
from ingest.integrations.generic.presets import READY
from ingest.integrations.json_body import read_object
from ingest.log.types import Context


class Command(BaseCommand):
    help = (
        "Create an integration key and print it. Only its hash is stored, so the key cannot be shown again."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", help="name of the key in events and logs")
        parser.add_argument(
            "--scope",
            action="append",
            required=True,
            choices=keys.SCOPES,
            help="scope of the key; repeatable",
        )
        parser.add_argument("--region", default="", help="region of rows without one (default: default)")
        parser.add_argument(
            "--expires", help="expiry: a span such as 90d or a date such as 2027-01-31 (default: never)"
        )
        parser.add_argument(
            "--mapping",
            help=f"mapping of its generic endpoint: {', '.join(READY)} (see `manage.py sender`) or a JSON file",
        )

    def handle(self, *args: object, **options: object) -> None:
        scopes, region = options["scope"], str(options["region"])
        assert isinstance(scopes, list)
        try:
            mapping = _mapping(options["mapping"])
            secret = keys.create(
                str(options["name"]),
                scopes,
                region,
                mapping,
                expires_at=_expiry(options["expires"]),
                context=Context("system:create_key"),
            )
            self.stdout.write(secret)
        except (ValueError, OSError) as error:
            raise CommandError(str(error)) from error


def _expiry(value: object) -> datetime | None:
    """A span of days or hours from now, or a date (UTC). Raises ValueError."""
    if value is None:
        return None
    text = str(value).strip()
    span = re.fullmatch(r"(\d{1,5})([dh])", text)
    if span is not None:
        return timezone.now() + timedelta(**{"days" if span[2] == "d" else "hours": int(span[1])})
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"--expires is {text[:50]!r}; it must be a span such as 90d, or a date such as 2027-01-31"
        ) from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _mapping(value: object) -> Mapping[str, Any] | None:
    if value is None:
        return None
    return READY[str(value)].mapping if value in READY else read_object(Path(str(value)).read_bytes())
