"""Common parts of the commands for a terminal: no system checks, parameters as `K=V`, one line for a refusal."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any, NoReturn

from django.core.management.base import BaseCommand

from analyzers.contract import Analyzer, InvalidParameterError, ParamValue, check_params

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


def parse_params(analyzer: Analyzer, pairs: Iterable[str]) -> dict[str, ParamValue]:
    """The complete parameters (defaults filled in) from `K=V` strings, as on a command line.

    `K=@FILE` takes the text of a file, for parameters that are documents. Raises InvalidParameterError.
    """
    documents = {param.name for param in analyzer.params if param.check is not None}
    given: dict[str, str] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals or not name.strip():
            raise InvalidParameterError(f"parameter {pair!r} is not of the form NAME=VALUE")
        if name.strip() in given:
            raise InvalidParameterError(f"parameter {name.strip()} is given twice")
        value = value.strip()
        document = name.strip() in documents and value.startswith("@")
        given[name.strip()] = _text_of(name.strip(), value[1:]) if document else value
    return check_params(analyzer, given)


def _text_of(name: str, file: str) -> str:
    try:
        return Path(file).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "is not UTF-8"
        raise InvalidParameterError(f"parameter {name}: {file}: cannot be read: {reason}") from error
