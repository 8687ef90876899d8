"""Judges results of SuperBench by a baseline and a rule file, as its own diagnosis does."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from django.core.management.base import CommandParser

from analyzers.runs.management.line_command import CommandInputError, LineCommand
from ingest.integrations import superbench


class Command(LineCommand):
    help = (
        "Judge the nodes of a SuperBench results-summary.jsonl by a baseline and rules; the rules' criteria are "
        "parsed, never executed. Example: manage.py diagnose superbench --results results-summary.jsonl "
        "--baseline baseline.json --rules rules.yaml"
    )

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("format", choices=["superbench"], help="format of the files")
        for name, what in (
            ("results", "results-summary.jsonl, one object per node"),
            ("baseline", "JSON object of numbers by metric"),
            ("rules", "YAML with superbench.rules"),
        ):
            parser.add_argument(f"--{name}", metavar="FILE", help=what)
        parser.add_argument("--all", action="store_true", help="also list nodes without a defect")
        parser.add_argument(
            "--json", action="store_true", help="write a JSON array in the format of SuperBench"
        )

    def work(self, **options: Any) -> None:
        from analyzers.superbench.diagnosis import Finding, diagnose
        from analyzers.superbench.rules import InvalidRulesError, parse_baseline, parse_rules

        payloads = {name: _payload(name, options[name]) for name in ("results", "baseline", "rules")}
        try:
            results = superbench.parse_results(payloads["results"])
        except superbench.InvalidResultsError as error:
            raise CommandInputError(f"{options['results']}: {error}") from error
        try:
            rules = parse_rules(payloads["rules"])
        except InvalidRulesError as error:
            raise CommandInputError(f"{options['rules']}: {error}") from error
        try:
            baseline = parse_baseline(payloads["baseline"])
            found = diagnose(results, rules, baseline)
        except InvalidRulesError as error:
            raise CommandInputError(f"{options['baseline']}: {error}") from error
        found.sort(key=lambda one: (",".join(one.categories), ",".join(one.details)), reverse=True)
        shown: list[Finding] = [one for one in found if one.defective or options["all"]]
        if options["json"]:
            self.show([json.dumps([_record(one, options["all"]) for one in shown], indent=2)])
        else:
            self.show(_lines(shown, len(found)))


def _record(one: Any, every: bool) -> dict[str, Any]:
    """The record of a node under SuperBench's names; what a node without a defect lacks is null."""
    record: dict[str, Any] = {"index": one.node}
    if every:
        record["diagnosis/accept"] = not one.defective
        record["diagnosis/issue_num"] = len(one.details) if one.defective else 0
    record["diagnosis/category"] = ",".join(one.categories) if one.defective else None
    record["diagnosis/issue_details"] = ",".join(one.details) if one.defective else None
    figures = {name: "N/A" if value is None else value for name, value in one.metrics.items()}
    return {**record, **figures}


def _lines(shown: list[Any], nodes: int) -> list[str]:
    defective = sum(one.defective for one in shown)
    lines = [f"{defective} of {nodes} nodes are defective"]
    for one in shown:
        lines += ["", f"{one.node}  {', '.join(one.categories) if one.defective else 'no defect'}"]
        lines += [f"    {detail}" for detail in one.details] if one.defective else []
    return lines


def _payload(what: str, name: str | None) -> bytes:
    if name is None:
        raise CommandInputError(f"--{what} FILE is missing")
    try:
        return Path(name).read_bytes()
    except OSError as error:
        raise CommandInputError(f"{name}: cannot be read: {error.strerror}") from error
