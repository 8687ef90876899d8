"""`manage.py check` as Django has it, failing on warnings too: a plugin that cannot be used is one."""

from __future__ import annotations

from django.core.management.base import CommandParser
from django.core.management.commands import check


class Command(check.Command):
    def add_arguments(self, parser: CommandParser) -> None:
        super().add_arguments(parser)
        parser.set_defaults(fail_level="WARNING")
