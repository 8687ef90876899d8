"""`manage.py up`: everything that Dossier needs, on this machine, until Ctrl-C."""

from __future__ import annotations

import os
import sys
import time
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from deploy import privileges
from deploy.embedded import EmbeddedError
from deploy.privileges import PrivilegeError
from deploy.supervisor import replacement
from deploy.supervisor.root_start import allow_root
from deploy.supervisor.supervisor import StartupError, make_ready, running, stopping_on_signals
from deploy.version import VERSION


class Command(BaseCommand):
    help = (
        "Start database, broker, web processes, workers, scheduler and followers on this machine;"
        " Ctrl-C stops them."
    )
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument(
            "--replace",
            action="store_true",
            help="replace the version running in DOSSIER_HOME, which serves until this one is ready",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            allow_root()
        except PrivilegeError as error:
            raise CommandError(str(error)) from error
        if options["replace"]:
            self.replace()
            return
        try:
            with stopping_on_signals(), running(settings.HOME, self.say) as supervisor:
                self.say(f"Dossier is running at {settings.PUBLIC_URL}; Ctrl-C stops it")
                while True:
                    supervisor.watch()
                    time.sleep(0.2)
        except (StartupError, EmbeddedError, PrivilegeError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self.say("stopped")

    def replace(self) -> None:
        if privileges.is_root() and not privileges.is_roots(settings.HOME.root):
            privileges.give_up(privileges.owner(settings.HOME.root), settings.HOME.root)
        try:
            environment = replacement.its_environment(replacement.running(settings.HOME))
            program = [sys.executable, str(settings.BASE_DIR / "manage.py")]
            if environment != dict(os.environ):  # read again under the settings of the one that runs
                os.execve(program[0], [*program, "up", "--replace"], environment)
            make_ready(self.say)
            connections.close_all()
            replacement.request_replacement(settings.HOME, program)
            while (failed := replacement.outcome(settings.HOME)) is None:
                replacement.running(settings.HOME)
                time.sleep(0.2)
        except replacement.ReplacementError as error:
            raise CommandError(str(error)) from error
        except StartupError as error:
            raise CommandError(f"not replaced: {error}") from error
        if failed:
            raise CommandError(f"not replaced: {failed}")
        self.say(f"replaced: {settings.PUBLIC_URL} is served by {settings.BASE_DIR}, version {VERSION}")

    def say(self, line: str) -> None:
        self.stdout.write(line)
        self.stdout.flush()
