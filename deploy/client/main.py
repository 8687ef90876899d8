"""`dossier`: its arguments, and the exit code of what came of them."""

from __future__ import annotations

import argparse
import os
import re
import shutil
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from typing import Any, NoReturn

from . import __version__, actions, settings
from .completion import SHELLS, completion
from .errors import USAGE, ClientError
from .server import Server
from .tail import tail
from .text import Screen, clean

EXAMPLES = """\
examples:
  dossier login https://dossier.example.com --user alice
  dossier list                        unresolved incidents
  dossier list severity:critical --mine
  dossier show 12                     verdict, alerts, evidence, timeline
  dossier ack 12
  dossier hand-over 12 storage "disk latency on s7"
  dossier silence 12 2h "replacing the optic"
  dossier resolve 12 tor/dc1-t12 --note "optic replaced"
  dossier tail                        changes as they happen

exit codes:
  0 done, 1 failed, 2 wrong arguments or a value rejected, 3 server not reached,
  4 key missing, refused or without the scope, 5 not found, 6 does not fit the state
"""
INTERRUPTED = 130


class Parser(argparse.ArgumentParser):
    """Arguments of one command; a wrong one is one line on stderr."""

    def error(self, message: str) -> NoReturn:
        # The line of an unknown command would list all of them.
        reason = re.sub(r"^(argument COMMAND: invalid choice: .*) \(choose from .*\)$", r"\1", message)
        self.exit(USAGE, f"dossier: {clean(reason)}; see {self.prog} --help\n")


class HelpFormatter(argparse.RawDescriptionHelpFormatter):
    """Examples as they are written, and help texts beside the longest command."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=26)


def parser() -> Parser:
    """All commands and their arguments."""
    top = Parser(
        "dossier",
        description="Incidents of a Dossier in a terminal.",
        epilog=EXAMPLES,
        formatter_class=HelpFormatter,
    )
    top.add_argument("--version", action="version", version=f"dossier {__version__}")
    commands = top.add_subparsers(metavar="COMMAND", required=True, title="commands")

    def add(
        name: str, run: Callable[..., None], help: str, example: str = "", *, plain: bool = False
    ) -> Parser:
        epilog = f"example:\n  {example}" if example else None
        one: Parser = commands.add_parser(
            name,
            help=help,
            description=help,
            epilog=epilog,
            formatter_class=HelpFormatter,
        )
        one.set_defaults(run=run, plain=plain)
        if not plain:
            one.add_argument("--json", action="store_true", help="print JSON")
        return one

    _add_account(add)
    _add_reading(add)
    _add_commands(add)
    _add_suppression(add)
    _add_analysis(add)
    add(
        "mcp",
        serve_tools,
        "serve tools for an assistant on stdin and stdout (Model Context Protocol)",
        plain=True,
    )
    return top


def _add_account(add: Callable[..., Parser]) -> None:
    one = add(
        "login",
        actions.login,
        "store the address of a server and an API key",
        "dossier login https://dossier.example.com --user alice < key.txt",
        plain=True,
    )
    one.add_argument("url", metavar="URL")
    one.add_argument("--user", metavar="NAME", help="your login: owner of what you acknowledge, and `me`")
    add("logout", actions.logout, "remove the stored address and key", plain=True)
    one = add(
        "completion",
        show_completion,
        "print the completion of a shell",
        'eval "$(dossier completion bash)"',
        plain=True,
    )
    one.add_argument("shell", choices=SHELLS)


def _add_reading(add: Callable[..., Parser]) -> None:
    one = add(
        "list",
        actions.list_incidents,
        "list incidents; without a filter the unresolved ones",
        "dossier list rack 12 --team fabric --severity critical",
    )
    one.add_argument(
        "search", nargs="*", metavar="WORD", help="the search of the inbox: words and name:value"
    )
    one.add_argument(
        "--state",
        action="append",
        default=[],
        metavar="STATE",
        help="open, acknowledged, snoozed, resolved; repeat for alternatives",
    )
    for name in ("severity", "team", "component", "service"):
        one.add_argument(f"--{name}", action="append", default=[], metavar=name.upper())
    one.add_argument(
        "--owner", action="append", default=[], metavar="NAME", help="login, me, or - for unassigned"
    )
    one.add_argument("--mine", action="store_true", help="same as --owner me")
    one.add_argument("--all", action="store_true", help="also resolved incidents")
    one.add_argument("--order", choices=["newest", "oldest", "severity", "updated", "hops"])
    one.add_argument("--limit", type=_count, default=50, metavar="N", help="default 50")
    one.add_argument("--as-of", metavar="TIME", help="state at a time or log position")
    one = add(
        "show",
        actions.show,
        "show an incident: verdict, alerts, evidence, timeline",
        "dossier show 12 --as-of 2026-01-31T12:00:00Z",
    )
    one.add_argument("incident", metavar="N", help="number or id")
    one.add_argument("--all", action="store_true", help="every piece of evidence, row and entry")
    one.add_argument("--as-of", metavar="TIME", help="state at a time or log position")
    one = add(
        "tail",
        tail,
        "print changes of incidents as they happen; ends with Ctrl-C",
        "dossier tail --team fabric",
    )
    one.add_argument("--team", action="append", default=[], metavar="TEAM")
    one.add_argument(
        "--after", default="", metavar="POSITION", help="begin after a log position; default: now"
    )
    one = add(
        "on-call",
        actions.on_call,
        "list the people on call",
        "dossier on-call network --at 2026-01-31T12:00:00Z",
    )
    one.add_argument("schedule", nargs="?", metavar="SCHEDULE")
    one.add_argument("--at", metavar="TIME", help="default: now")


def _add_commands(add: Callable[..., Parser]) -> None:
    def on_incident(name: str, run: Callable[..., None], help: str, example: str) -> Parser:
        one = add(name, run, help, example)
        one.add_argument("incident", metavar="N", help="number or id")
        return one

    one = add("ack", actions.acknowledge, "acknowledge incidents: their escalation ends", "dossier ack 12 14")
    one.add_argument("incidents", nargs="+", metavar="N", help="number or id")
    on_incident("unack", actions.simple("unacknowledge"), "undo an acknowledgement", "dossier unack 12")
    one = on_incident("assign", actions.assign, "assign an owner", "dossier assign 12 me")
    one.add_argument("user", metavar="NAME", help="login, me, or - for no owner")
    one = on_incident(
        "hand-over",
        actions.hand_over,
        "move an incident to another team",
        'dossier hand-over 12 storage "disk latency on s7"',
    )
    one.add_argument("team", metavar="TEAM", help="slug of the team")
    one.add_argument("reason", metavar="REASON")
    on_incident("accept", actions.simple("accept"), "accept a hand-over", "dossier accept 12")
    one = on_incident(
        "bounce",
        actions.simple("bounce", "reason"),
        "reject a hand-over",
        'dossier bounce 12 "no disk involved"',
    )
    one.add_argument("reason", metavar="REASON")
    one = on_incident(
        "snooze", actions.snooze, "snooze until a time, or until it changes", "dossier snooze 12 2h"
    )
    one.add_argument(
        "until", nargs="?", metavar="TIME", help="30m, 2h, 1d or an RFC 3339 time; left out: until it changes"
    )
    one.add_argument("--reason", default="", metavar="TEXT")
    one = on_incident(
        "resolve",
        actions.resolve,
        "resolve with the confirmed cause",
        'dossier resolve 12 tor/dc1-t12 --note "optic replaced"',
    )
    one.add_argument(
        "cause", metavar="CAUSE", help="a component, a class of causes such as firmware, or none"
    )
    one.add_argument("--note", metavar="TEXT")
    one = on_incident(
        "reopen", actions.simple("reopen", "reason"), "open a resolved incident again", "dossier reopen 12"
    )
    one.add_argument("--reason", metavar="TEXT")
    one = on_incident(
        "note", actions.comment, "add a comment to the timeline", 'dossier note 12 "optic swapped, watching"'
    )
    one.add_argument("text", metavar="TEXT", help="Markdown; - reads it from stdin")
    on_incident(
        "undo",
        actions.simple("undo"),
        "undo the last merge, snooze or unanswered hand-over",
        "dossier undo 12",
    )


def _add_suppression(add: Callable[..., Parser]) -> None:
    one = add(
        "silence",
        actions.silence,
        "silence alerts until a time",
        'dossier silence \'alertname="DiskFull"\' 2h "disk is being replaced"',
    )
    one.add_argument(
        "what", metavar="N|MATCHERS", help="an incident: the labels that its firing alerts share; or matchers"
    )
    one.add_argument("until", metavar="TIME", help="30m, 2h, 1d or an RFC 3339 time")
    one.add_argument("reason", metavar="REASON")
    one = add("silences", actions.silences, "list silences in force")
    one.add_argument("--all", action="store_true", help="also expired ones")
    one = add("unsilence", actions.unsilence, "end a silence now")
    one.add_argument("silence", metavar="ID")


def _add_analysis(add: Callable[..., Parser]) -> None:
    one = add(
        "analyze",
        actions.analyze,
        "run an analyzer on the server's telemetry; without a name list the analyzers",
        "dossier analyze deepview --length 1h",
    )
    one.add_argument("analyzer", nargs="?", metavar="ANALYZER")
    one.add_argument(
        "--length", default="1h", metavar="SPAN", help="time up to the newest telemetry, default 1h"
    )
    one.add_argument("--region", default="default", metavar="REGION")
    one.add_argument("--param", action="append", default=[], metavar="K=V")
    one.add_argument("--report", action="store_true", help="findings may open incidents and join them")
    one.add_argument("--timeout", type=_count, default=600, metavar="SECONDS", help="default 600")
    one.add_argument("--all", action="store_true", help="every row of the evidence")


def _count(text: str) -> int:
    number = int(text) if text.isdecimal() else 0
    if number < 1:
        raise argparse.ArgumentTypeError("must be a whole number from 1")
    return number


def show_completion(given: argparse.Namespace, _: Screen) -> None:
    print(completion(parser(), given.shell))


def serve_tools(_: argparse.Namespace, __: Screen) -> None:
    """Serve tools on stdin and stdout until the assistant closes them."""
    try:
        from .mcp import mcp_server
    except ModuleNotFoundError as error:
        if error.name not in ("mcp", "mcp_types", "pydantic"):
            raise
        raise ClientError("the package mcp is not installed; run: pipx inject dossier-client mcp") from None
    server = Server(settings.load_account())
    mcp_server(lambda _: server).run("stdio")


def screen() -> Screen:
    """The terminal at stdout, or a pipe."""
    terminal = sys.stdout.isatty()
    width = shutil.get_terminal_size().columns if terminal else None
    colour = terminal and "NO_COLOR" not in os.environ and os.environ.get("TERM") != "dumb"
    return Screen(datetime.now(UTC), width, colour)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns the exit code. Errors are one line on stderr."""
    given: Any = parser().parse_args(arguments)
    try:
        if given.plain:
            given.run(given, screen())
        else:
            account = settings.load_account()
            given.run(given, screen(), Server(account), account)
        sys.stdout.flush()
    except ClientError as error:
        print(f"dossier: {clean(error)}", file=sys.stderr)
        return error.code
    except BrokenPipeError:
        # The reader has enough (`dossier list | head`): without this Python complains once more at its end.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except (KeyboardInterrupt, EOFError):
        return INTERRUPTED
    return 0
