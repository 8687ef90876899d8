"""manage.py sender NAME [--address ADDRESS]: print what to paste into a monitoring system so that it sends here."""

from __future__ import annotations

import re
from argparse import ArgumentParser, ArgumentTypeError

from django.core.management.base import BaseCommand

from ingest.integrations.generic.presets import ADDRESS, READY

_ADDRESS = re.compile(r"""https?://[^\s/'"]+/integrations/[^\s'"]+""")


def _address(typed: str) -> str:
    if _ADDRESS.fullmatch(typed) is None:
        raise ArgumentTypeError(f"{typed!r} is no address of an integration; {ADDRESS} is one")
    return typed


class Command(BaseCommand):
    help = (
        "Print the configuration of a sender for the generic endpoint. Create its key with the"
        " mapping of the same name."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name", choices=READY)
        parser.add_argument(
            "--address",
            type=_address,
            default=ADDRESS,
            help="address of the integration, which ends in its key",
        )

    def handle(self, *args: object, **options: object) -> None:
        for where, text in READY[str(options["name"])].configured(str(options["address"])):
            self.stdout.write(f"==> {where}\n\n{text}")
