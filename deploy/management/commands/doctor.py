"""`manage.py doctor`: what is wrong with this installation, one line each; exit 1 where something is."""

from __future__ import annotations

import sys
from typing import Any

from django.core.management.base import BaseCommand

from deploy.observability.health import advice, reasons, secrets


class Command(BaseCommand):
    help = "Say what is wrong with this installation; exit 1 where something is."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def handle(self, *_: Any, **options: Any) -> None:
        found = reasons()
        if not any(one.startswith("database") for one in found):
            found += [*([lost] if (lost := secrets()) else []), *advice()]
        for one in found:
            self.stdout.write(one)
        if found:
            sys.exit(1)
        self.stdout.write("Nothing is wrong.")
