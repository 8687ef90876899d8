"""`manage.py mitigation`: what can be done about a training job with a faulty component, without a server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandParser

from analyzers.runs.management.line_command import CommandInputError, LineCommand
from incidents.domain.remediation.comparison import FIELDS, NETWORK, Mitigation, assumed, compared
from incidents.domain.remediation.mitigation import NAMES
from incidents.domain.values import InvalidValueError


class Command(LineCommand):
    help = (
        "Compare waiting, a restart and a live migration of a training job by the GPU-hours that each is expected to"
        " lose. Inputs that are left out are assumed. Exit 0, 2 if an input is wrong. No database, no server."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        for one in (*FIELDS, *NETWORK):
            flag = f"--{one.name.replace('_', '-')}"
            parser.add_argument(flag, metavar="N", default="", help=f"{one.label} ({one.unit})")
        parser.add_argument("--json", action="store_true", help="print the comparison as JSON")

    def work(self, **options: Any) -> None:
        given = {one.name: str(options[one.name]) for one in (*FIELDS, *NETWORK)}
        try:
            found = compared(given, assumed())
        except InvalidValueError as error:
            raise CommandInputError(f"--{error.field.replace('_', '-')}: {error.reason}") from error
        self.show(
            [json.dumps(found.as_json(), ensure_ascii=False, indent=2)] if options["json"] else _lines(found)
        )


def _lines(found: Mitigation) -> Iterator[str]:
    yield f"{NAMES[found.best.name]}: expected to lose least"
    yield ""
    yield f"{'option':<34} {'GPU-hours':>12}"
    for one in found.options:
        hours = "-" if one.gpu_hours is None else f"{one.gpu_hours:,.1f}"
        yield f"{NAMES[one.name]:<34} {hours:>12}  {one.reason}".rstrip()
    yield ""
    for value in found.values:
        yield f"{value.field.label:<46} {value.text:>10}  {value.field.unit} ({value.source})"
    if found.network is not None:
        helps = "helps" if found.network.helps else "does not help"
        yield ""
        yield (
            f"The faster network {helps}: {found.network.share:.0%} of an iteration saved, workers wait"
            f" {found.network.now:.3g} s now and {found.network.then:.3g} s then"
        )
