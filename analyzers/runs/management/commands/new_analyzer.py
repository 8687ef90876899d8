"""Writes the package of a new analyzer, with tests that pass."""

from __future__ import annotations

import keyword
import re
import sys
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from analyzers import registry
from analyzers.runs.management.line_command import CommandInputError, LineCommand
from analyzers.runs.management.skeleton import files


class Command(LineCommand):
    help = "Create the package of a new analyzer: declaration, method and tests, as a starting point."

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", metavar="NAME", help="lower case letters, digits and underscores")
        parser.add_argument("--out", type=Path, metavar="DIR", help="directory to create (./dossier-NAME)")

    def work(self, **options: Any) -> None:
        name = options["name"]
        _check(name)
        out: Path = options["out"] or Path(f"dossier-{name.replace('_', '-')}")
        try:
            out.mkdir(parents=True)
            for path, text in files(name).items():
                (out / path).write_text(text, encoding="utf-8")
        except FileExistsError as error:
            raise CommandInputError(f"{out}: exists already; --out DIR names another folder") from error
        except OSError as error:
            raise CommandInputError(f"{out}: cannot write there: {error.strerror}") from error
        self.show(str(out / path) for path in files(name))
        python = sys.executable
        self.show(
            [
                "Next:",
                f"    {python} -m pip install --no-deps --no-build-isolation -e {out}",
                f"    {python} -m pytest {out}",
                "    manage.py analyzers",
            ]
        )


def _check(name: str) -> None:
    if not re.fullmatch(r"[a-z][a-z0-9_]*", name) or keyword.iskeyword(name) or len(name) > 40:
        raise CommandInputError(
            f"{name[:60]!r} is no name for an analyzer: lower case letters, digits and underscores, such as top_talker"
        )
    taken = {*registry.installed(), *(problem.name for problem in registry.problems())}
    if name in taken:
        raise CommandInputError(f"an analyzer called {name} is installed already; choose another name")
