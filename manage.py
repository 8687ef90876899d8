#!/usr/bin/env python
"""Dossier's command line."""

import os
import sys
from typing import NoReturn

from django.core.management.base import CommandError, CommandParser

OFFLINE = {
    "analyze",
    "analyzers",
    "convert",
    "diagnose",
    "mitigation",
    "new_analyzer",
    "simulate",
    "validate_change",
    "verify_evidence",
}
"""Commands that work on files alone; their settings open no connection and read no environment."""


TOGETHER = {"demo", "up"}
"""Commands whose process is forked into all others."""


def refuse(parser: CommandParser, message: str) -> NoReturn:
    """One line in place of the usage, which `--help` prints; no code of a command is to see the process end."""
    if not parser.called_from_command_line:
        raise CommandError(message)
    parser.exit(2, f"{' '.join(message.split())}; see {parser.prog} --help\n")


HELP: tuple[list[str], ...] = ([], ["help"], ["--help"], ["-h"])


def command_list() -> str:
    """The help text with all commands, without the models and services that Django's own way to it imports."""
    from django.apps import AppConfig, apps
    from django.conf import settings
    from django.core.management import ManagementUtility

    for entry in settings.INSTALLED_APPS:
        config = AppConfig.create(entry)
        apps.app_configs[config.label] = config
    apps.apps_ready = True
    return ManagementUtility().main_help_text()


def main() -> None:
    offline = len(sys.argv) > 1 and sys.argv[1] in OFFLINE
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.offline" if offline else "deploy.settings")
    from django.core.management import execute_from_command_line

    CommandParser.error = refuse  # type: ignore[assignment, method-assign]
    try:
        if sys.argv[1:] in HELP:
            sys.stdout.write(f"{command_list()}\n")
            return
        if len(sys.argv) > 1 and sys.argv[1] in TOGETHER:
            from deploy.supervisor.fork_server import prepare

            prepare()
        execute_from_command_line(sys.argv)
    except Exception as error:
        from deploy.supervisor.preflight import complaint

        if (line := complaint(error)) is None:
            raise
        sys.exit(line)


if __name__ == "__main__":
    main()
