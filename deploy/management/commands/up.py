"""`manage.py up`: everything that Dossier needs, on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import time
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from deploy.embedded import EmbeddedError
from deploy.supervisor import CannotStart, running, stopping_on_signals


class Command(BaseCommand):
    help = (
        "Start database, broker, pages, worker, scheduler and followers on this machine; Ctrl-C stops them."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def handle(self, *args: Any, **options: Any) -> None:
        if os.geteuid() == 0 and not settings.AS_ROOT:
            raise CommandError(
                "up does not run as root: pages, analyzers and plugins would be root, too. Start it as another user, or"
                " with DOSSIER_AS_ROOT=true where there is none, as in a container."
            )
        try:
            with stopping_on_signals(), running(settings.HOME, self.say) as supervisor:
                self.say(f"Dossier answers on {settings.BASE_URL}; Ctrl-C stops it")
                while True:
                    supervisor.watch()
                    time.sleep(0.2)
        except (CannotStart, EmbeddedError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self.say("stopped")

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
