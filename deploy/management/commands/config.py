"""`manage.py config export`, `import SYSTEM FILE...`, `diff FILE` and `apply FILE`: configuration as one YAML file."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser, ArgumentTypeError
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from deploy.accounts import shell_operator
from deploy.config_import import SYSTEMS, exports, imported
from deploy.configuration import configured
from deploy.env import parse_duration
from incidents.api.config.analyzer_replay import ReplayedSchedule
from incidents.api.config.replay import ConfigurationReplay, Limits, replay_configuration
from incidents.api.config.views import Catalogs, Change, apply, differences, exported
from incidents.domain.config.yaml import Document, InvalidConfigurationError, read, write
from incidents.domain.configuration_replay import PastIncident
from incidents.domain.importers.draft import InvalidImportError
from incidents.domain.values import InvalidValueError
from ingest.queries import now_utc


class Command(BaseCommand):
    help = (
        "Export all configuration as YAML (export), convert the configuration of another system"
        " to it (import), list the changes that a file would make (diff: exit 1 if there are"
        " any), or apply a file, completely or not at all (apply). Objects that the file does not"
        " name are kept; --prune removes those missing from its lists."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("export").add_argument("file", nargs="?", default="-", help="default: - (stdout)")
        read = actions.add_parser("import", help="write a file for diff and apply; changes nothing")
        read.add_argument("system", choices=SYSTEMS)
        read.add_argument(
            "files",
            nargs="+",
            help="alertmanager.yml, or JSON files of the system's API, or directories of them",
        )
        read.add_argument("--out", default="-", help="file to write; default: - (stdout)")
        read.add_argument("--environment", help="file for the secrets: `export NAME=value` lines, mode 600")
        read.add_argument(
            "--integration", default="", help="alertmanager: limit the routes to alerts of this integration"
        )
        for name in ("diff", "apply"):
            action = actions.add_parser(name)
            action.add_argument("file", help="file to read; -: stdin")
            action.add_argument(
                "--prune", action="store_true", help="remove objects missing from the lists of the file"
            )
            if name == "diff":
                _add_replay(action)

    def handle(self, *_: Any, **options: Any) -> None:
        catalogs = configured()
        if options["action"] == "export":
            self._export(options["file"], write(exported(catalogs)))
            return
        if options["action"] == "import":
            self._import(options)
            return
        dry = options["action"] == "diff"
        try:
            document = read(_text(options["file"]), list(catalogs))
            if options.get("replay"):
                self._replay(document, catalogs, options)
                return
            changes = apply(
                document, catalogs, shell_operator(), environment=os.environ, prune=options["prune"], dry=dry
            )
        except InvalidConfigurationError as error:
            text = "\n".join(f"{options['file']}: {fault}" for fault in error.faults)
            raise CommandError(f"{text}\nNothing was changed.", returncode=2) from None
        for change in changes:
            self.stdout.write(_change_line(change))
        self.stdout.write(_summary(len(changes), dry))
        if unset := list(dict.fromkeys(name for change in changes for name in change.unset)):
            self.stdout.write(f"Set before `config apply`: {', '.join(unset)}.")
        if dry and changes:
            sys.exit(1)

    def _replay(self, document: Document, catalogs: Catalogs, options: dict[str, Any]) -> None:
        """Print the replay; exit 1 where a threshold is exceeded."""
        now = now_utc()
        try:
            span = (now - parse_duration(options["replay"]), now)
            found = replay_configuration(
                document,
                catalogs,
                shell_operator(),
                span,
                environment=os.environ,
                prune=options["prune"],
                versions=options["versions"],
            )
        except InvalidValueError as error:
            raise CommandError(f"--replay {options['replay']}: {error.reason}", returncode=2) from None
        except ValueError as error:
            raise CommandError(f"--replay {options['replay']}: {error}", returncode=2) from None
        limits = Limits(options["max_more_calls"], options["max_missed"], options["max_later_minutes"])
        exceeded = found.exceeded(limits)
        if options["json"]:
            self.stdout.write(json.dumps({**found.as_json(), "exceeded": exceeded}, indent=2, default=str))
        else:
            self.stdout.write("\n".join(_replay_lines(found)))
            for one in exceeded:
                self.stdout.write(f"Threshold exceeded: {one}.")
        if exceeded:
            sys.exit(1)

    def _export(self, file: str, text: str, *, secret: bool = False) -> None:
        if file == "-":
            self.stdout.write(text, ending="")
            return
        try:
            if secret:
                Path(file).touch(mode=0o600)
                Path(file).chmod(0o600)
            Path(file).write_text(text)
        except OSError as error:
            raise CommandError(f"{file}: cannot be written: {error}", returncode=2) from None

    def _import(self, options: dict[str, Any]) -> None:
        try:
            draft = imported(options["system"], options["files"], options["integration"])
        except InvalidImportError as error:
            raise CommandError(f"{error}\nNothing was written.", returncode=2) from None
        if options["environment"]:
            self._export(options["environment"], exports(draft.variables), secret=True)
        self._export(options["out"], write(draft.file()))
        counts = ", ".join(f"{name} {len(items)}" for name, items in draft.file().items())
        self.stderr.write(f"Translated: {counts.replace('_', ' ') or 'nothing'}.")
        if draft.left:
            self.stderr.write(f"Not translated, {len(draft.left)}:")
        for one in draft.left:
            self.stderr.write(f"  {one}")
        if draft.variables and not options["environment"]:
            self.stderr.write(
                f"Set before `config apply`: {', '.join(draft.variables)} (--environment writes them)."
            )
        if options["out"] != "-":
            self.stderr.write(f"Next: manage.py config diff {options['out']}")


def _add_replay(action: ArgumentParser) -> None:
    action.add_argument(
        "--replay",
        metavar="SPAN",
        help="replay recorded incidents of this span, such as 30d, and compare pages, teams and missed"
        " incidents; exit 1 only if a threshold is exceeded",
    )
    action.add_argument(
        "--max-more-calls", type=_count, metavar="N", help="largest increase in pages, with --replay"
    )
    action.add_argument(
        "--max-missed", type=_count, metavar="N", help="largest number of missed incidents, with --replay"
    )
    action.add_argument(
        "--max-later-minutes",
        type=_count,
        metavar="N",
        help="largest mean delay in minutes until the right team has an incident, with --replay",
    )
    action.add_argument(
        "--versions",
        action="store_true",
        help="with --replay: compare recorded verdicts of earlier versions of analyzers with the installed ones",
    )
    action.add_argument("--json", action="store_true", help="print JSON, with --replay")


def _count(text: str) -> int:
    if not text.isdecimal():
        raise ArgumentTypeError("must be a whole number from 0")
    return int(text)


def _replay_lines(found: ConfigurationReplay) -> list[str]:
    """The figures, for people."""
    one = found.compared
    minutes, net = one.minutes, one.net
    shown = found.as_json()["missed"]
    lines = [_change_line(change) for change in found.changes]
    lines += [
        "",
        f"{one.incidents} incidents from {found.start:%Y-%m-%d %H:%M} to {found.end:%Y-%m-%d %H:%M} UTC"
        + ("" if found.complete else " (reading stopped after 50,000 events)"),
        f"Calls       {one.calls_before} -> {one.calls_after}: {one.more} more, {one.fewer} fewer, "
        f"net {net.value:+.0f} [{net.low:+.0f}, {net.high:+.0f}]",
        f"Right team  {one.earlier} earlier, {one.later} later of {one.known_team}; "
        f"{minutes.value:+.1f} min on average [{minutes.low:+.1f}, {minutes.high:+.1f}]",
        f"Missed      {one.missed} of {one.real} incidents with a confirmed cause "
        f"[{shown['low']:.3f}, {shown['high']:.3f}]",
    ]
    if one.never or one.anew:
        lines.append(f"Openings    {one.never} no longer opened, {one.anew} newly opened")
    lines += [
        f"  {what.replace('_', ' ')}: {', '.join(_example(past) for past in some)}"
        for what, some in sorted(one.examples.items())
    ]
    moved = {person: pair for person, pair in one.people.items() if pair[0] != pair[1]}
    if moved:
        lines.append("Called      " + ", ".join(f"{who} {was} -> {now}" for who, (was, now) in moved.items()))
    for each in found.analyzers:
        lines += _analyzer_lines(each)
    return lines


def _example(past: PastIncident) -> str:
    return past.title[:60] if past.number is None else f"#{past.number} {past.title[:60]}"


def _analyzer_lines(one: ReplayedSchedule) -> list[str]:
    if one.compared is None:
        return [f"Analyzer    {one.schedule}: not replayed, {one.why}"]
    compared, counts = one.compared, []
    for name in ("right", "wrong", "missed"):
        was, would = ("-" if side is None else str(side.as_json()[name]) for side in (one.before, one.after))
        counts.append(f"{name} {was} -> {would}")
    versions = (
        f" (version {one.versions} -> {one.after.as_json()['version']})" if one.versions and one.after else ""
    )
    net, minutes = compared.net, compared.minutes
    return [
        f"Analyzer    {one.schedule}{versions}: {', '.join(counts)}",
        f"  calls     {compared.calls_before} -> {compared.calls_after}: {compared.more} more, {compared.fewer} fewer, "
        f"net {net.value:+.0f} [{net.low:+.0f}, {net.high:+.0f}]",
        f"  known     {compared.earlier} earlier, {compared.later} later of {compared.known}; "
        f"{minutes.value:+.1f} min on average [{minutes.low:+.1f}, {minutes.high:+.1f}]; {compared.gained} gained",
        f"  missed    {len(compared.missed)} of {compared.found}"
        + (f": {', '.join(f'#{number}' for number in compared.missed[:10])}" if compared.missed else ""),
    ]


def _text(file: str) -> str:
    try:
        return sys.stdin.read() if file == "-" else Path(file).read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise CommandError(f"{file}: cannot be read: {error}", returncode=2) from None


def _change_line(change: Change) -> str:
    sign = "+" if change.before is None else "-" if change.after is None else "~"
    lines = [f"{sign} {change.kind} {change.key}"]
    for name, before, after in [] if change.after is None else differences(change):
        value = _short(after) if change.before is None else f"{_short(before)} -> {_short(after)}"
        lines.append(f"    {name}: {value}")
    return "\n".join(lines)


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= 200 else f"{text[:197]}..."


def _summary(count: int, dry: bool) -> str:
    if not count:
        return "Nothing differs." if dry else "Nothing to change."
    return f"{count} {'change' if count == 1 else 'changes'}{' to be made.' if dry else ' made.'}"
