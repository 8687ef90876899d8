"""`manage.py config export`, `import SYSTEM FILE...`, `diff FILE` and `apply FILE`: configuration as one YAML file."""

from __future__ import annotations

import json
import os
import sys
from argparse import ArgumentParser
from pathlib import Path
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from deploy.accounts import shell_operator
from deploy.config_import import SYSTEMS, exports, imported
from incidents.api.config.sections import FILED
from incidents.api.config.views import Catalogs, Change, apply, differences, exported
from incidents.api.editable import Catalog
from incidents.api.urls import router
from incidents.domain.config.yaml import InvalidConfigurationError, read, write
from incidents.domain.importers.draft import InvalidImportError
from incidents.reports.filing import SubscriptionsFile
from incidents.reports.views import ReportSchedulesView


class Command(BaseCommand):
    help = (
        "Write all configuration as YAML (export), make such a file of another system's configuration (import), say "
        "what a file would change (diff: exit 1 if anything), or make it so (apply): all of it or nothing. What the "
        "file does not name stays; --prune removes what its lists lack."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        actions.add_parser("export").add_argument("file", nargs="?", default="-", help="default: - (stdout)")
        read = actions.add_parser("import", help="changes nothing: it writes a file for diff and apply")
        read.add_argument("system", choices=SYSTEMS)
        read.add_argument(
            "files", nargs="+", help="alertmanager.yml, or JSON of the system's API and folders of it"
        )
        read.add_argument("--out", default="-", help="the file to write; default: - (stdout)")
        read.add_argument("--environment", help="a file for the secrets: `export NAME=value` lines, mode 600")
        read.add_argument(
            "--integration", default="", help="alertmanager: routes are for alerts of this key only"
        )
        for name in ("diff", "apply"):
            action = actions.add_parser(name)
            action.add_argument("file", help="- reads stdin")
            action.add_argument("--prune", action="store_true", help="remove what the lists of the file lack")

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
            changes = apply(
                document, catalogs, shell_operator(), environment=os.environ, prune=options["prune"], dry=dry
            )
        except InvalidConfigurationError as error:
            text = "\n".join(f"{options['file']}: {fault}" for fault in error.faults)
            raise CommandError(f"{text}\nNothing was changed.", returncode=2) from None
        for change in changes:
            self.stdout.write(_change_line(change))
        self.stdout.write(_summary(len(changes), dry))
        if dry and changes:
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


def configured() -> Catalogs:
    """What the API lets people configure, by the name of its address."""
    served = {prefix: view for prefix, view, _ in router.registry if issubclass(view, Catalog)}
    reports = {"report_schedules": ReportSchedulesView, "report_subscriptions": SubscriptionsFile}
    return {**served, **FILED, **reports}


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
