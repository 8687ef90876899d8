#!/usr/bin/env python
"""Dossier's command line."""

import os
import sys

OFFLINE = {"analyze", "analyzers", "convert", "diagnose", "simulate"}
"""Commands that work on files alone; their settings open no connection and read no environment."""


def main() -> None:
    offline = len(sys.argv) > 1 and sys.argv[1] in OFFLINE
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "deploy.offline" if offline else "deploy.settings")
    from django.core.management import execute_from_command_line

    try:
        execute_from_command_line(sys.argv)
    except Exception as error:
        from deploy.surroundings import complaint

        if (line := complaint(error)) is None:
            raise
        sys.exit(line)


if __name__ == "__main__":
    main()
