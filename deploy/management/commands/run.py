"""`manage.py run NAME`: one of the processes that `manage.py up` keeps running, alone, until SIGTERM."""

from __future__ import annotations

import os
import socket
from argparse import ArgumentParser

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from deploy import env, privileges
from deploy.postgres.base import VARIABLE as PROCESS
from deploy.privileges import PrivilegeError
from deploy.supervisor.programs import listen, programs
from deploy.supervisor.root_start import allow_root, leave_root


class Command(BaseCommand):
    help = "Run one process in the foreground: web, events, worker, scheduler, followers, delivery, mail or otlp."
    requires_system_checks: list[str] = []  # noqa: RUF012  # Django declares it so

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("name")
        parser.add_argument(
            "--fd",
            type=int,
            help="file descriptor of an inherited socket, which several processes may share (default: open"
            " PORT)",
        )

    def handle(self, *, name: str, fd: int | None, **options: object) -> None:
        known = {program.kind: program for program in reversed(programs())}
        if (program := known.get(name)) is None:
            raise CommandError(f"no process {name!r}; possible: {', '.join(sorted(known))}")
        for line in env.unread():
            self.stderr.write(f"settings: {line}")
        try:
            allow_root()
            privileges.act_as_owner(settings.HOME.root)
            with privileges.raised():
                opened = None if program.port is None else _opened(program.port, fd)
            leave_root(settings.HOME, self.stdout.write)
        except PrivilegeError as error:
            raise CommandError(str(error)) from error
        os.environ[PROCESS] = program.kind
        program.run(opened)


def _opened(port: int, fd: int | None) -> socket.socket:
    try:
        return listen(port) if fd is None else socket.socket(fileno=fd)
    except OSError as error:
        where = f"port {port}" if fd is None else f"file descriptor {fd}"
        raise CommandError(f"cannot listen on {where}: {error.strerror}") from error
