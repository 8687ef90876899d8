"""`manage.py doctor`: what is wrong with this installation, and the cure; exit 1 where something is.

The reasons and warnings of `/readyz`, with the names that it leaves out, and what staff should set right.
"""

from __future__ import annotations

import sys
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand

from deploy import processes
from deploy.observability.cures import cure, files, server, sharding
from deploy.observability.health import AS_ROOT, advice, delays, node_warnings, reasons, secrets
from ingest.commands import watch_database

FIRST_ANSWER = 10.0
"""Seconds that the database has to say what time it is."""


class Command(BaseCommand):
    help = "Check this installation and print its problems; exit 1 if there are any."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def handle(self, *_: Any, **options: Any) -> None:
        watch = watch_database()  # tells by how much the clock of this machine is wrong
        try:
            watch.first.wait(FIRST_ANSWER)
            found = [*reasons(), *delays(), *node_warnings()]
            if processes.run_as_root(settings.HOME.root):
                found.append(AS_ROOT)
        finally:
            watch.close()
        if not any(one.startswith("database") for one in found):
            found += [*([lost] if (lost := secrets()) else []), *server(), *files(), *sharding(), *advice()]
        for one in found:
            self.stdout.write(one)
            if known := cure(one):
                self.stdout.write(f"  -> {known}")
        if found:
            sys.exit(1)
        self.stdout.write("No problems found.")
