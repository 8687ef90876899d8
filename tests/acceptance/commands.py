"""Commands on files in the process of the test; `test_offline` shows that one of their own needs neither network nor
settings, and its codes and streams."""

from __future__ import annotations

import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import BytesIO, StringIO, TextIOWrapper
from unittest.mock import patch

from django.core.management import execute_from_command_line


@dataclass(frozen=True, slots=True)
class Done:
    """A command after its end."""

    returncode: int
    stdout: str
    stderr: str


def manage(*arguments: str, stdin: str = "") -> Done:
    """The command after its end; loading numeric libraries takes a process of its own a second each time."""
    out, err, code = StringIO(), StringIO(), 0
    given = TextIOWrapper(BytesIO(stdin.encode()))
    with redirect_stdout(out), redirect_stderr(err), patch.object(sys, "stdin", given):
        try:
            execute_from_command_line(["manage.py", *arguments])
        except SystemExit as end:
            code = int(end.code or 0)
    return Done(code, out.getvalue(), err.getvalue())


def printed(*arguments: str, stdin: str = "") -> str:
    """The output of a command that succeeds."""
    done = manage(*arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    return done.stdout
