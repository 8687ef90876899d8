"""What the commands for a terminal have in common: no system checks, and one clear line when refused."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from typing import IO, Any, NoReturn

from django.core.management.base import BaseCommand

REFUSED = 2
FAILED = 1
INTERRUPTED = 130


class CommandInputError(Exception):
    """The input or the parameters are wrong; the message is one line for the person who typed them."""


class CommandFailedError(Exception):
    """It was asked rightly and went wrong all the same."""


class LineCommand(BaseCommand):
    """Subclasses do their work in `work`, raise CommandInputError or CommandFailedError, and write with `show` and
    `progress`."""

    requires_system_checks = ()

    def work(self, **options: Any) -> None:
        raise NotImplementedError

    def handle(self, *_: Any, **options: Any) -> None:
        try:
            self.work(**options)
            sys.stdout.flush()
        except (CommandInputError, CommandFailedError) as error:
            if options["traceback"] and error.__cause__ is not None:
                traceback.print_exception(_first_cause(error), file=sys.stderr)
            self._complain(str(error), REFUSED if isinstance(error, CommandInputError) else FAILED)
        except BrokenPipeError:  # the reader (`head`) has seen enough
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        except KeyboardInterrupt:
            self._complain("interrupted", INTERRUPTED)

    def show(self, lines: Iterable[str]) -> None:
        for line in lines:
            self.stdout.write(line)

    def note(self, text: str) -> None:
        """A line beside the answer, on standard error."""
        self.stderr.write(f"note: {_one_line(text)}", style_func=str)

    def _complain(self, text: str, code: int) -> NoReturn:
        self.stderr.write(_one_line(text), style_func=str)
        sys.exit(code)


def _first_cause(error: BaseException) -> BaseException:
    """The exception that all others were raised from: for a crash that of the analyzer, with its lines."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


def is_terminal(stream: IO[str]) -> bool:
    return stream.isatty() and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"


def progress(what: str) -> Callable[[str], None]:
    """A function that shows how far `what` is, in place, if standard error is a terminal; "" clears it."""
    if not sys.stderr.isatty():
        return lambda _far: None

    def show(far: str) -> None:
        sys.stderr.write(f"\r\x1b[K{what} {far}" if far else "\r\x1b[K")
        sys.stderr.flush()

    return show


def _one_line(text: str) -> str:
    return " ".join(text.split())
