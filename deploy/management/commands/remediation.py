"""`manage.py remediation list`, `request NUMBER` and `answer NUMBER SAID`: nodes handed to the cluster."""

from __future__ import annotations

import json
from argparse import BooleanOptionalAction
from collections.abc import Iterator
from datetime import datetime
from typing import Any

from django.core.management.base import CommandParser
from django.db import OperationalError

from analyzers.commands import CommandFailedError, CommandInputError, LineCommand
from deploy.accounts import shell_operator
from incidents import queries
from incidents.domain.incident.remediation import left_open
from incidents.domain.incident.state import Incident
from incidents.domain.remediation.state import ANSWERS, Remediation
from incidents.domain.values import CommandRefusedError, InvalidValueError, parse_rfc3339
from incidents.queries import IncidentNotFoundError
from incidents.remediation import commands
from incidents.remediation.queries import commands_of, handed_over


class Command(LineCommand):
    help = (
        "List nodes handed to the cluster (list), hand one over (request), or record an answer of"
        " the cluster (answer). Exit 0 if done or already recorded, 2 if rejected."
    )

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", required=True)
        listed = actions.add_parser("list")
        listed.add_argument("--all", action="store_true", help="include resolved incidents")
        requesting = actions.add_parser("request")
        requesting.add_argument("number", metavar="NUMBER", help="number of the incident")
        requesting.add_argument("--reason", required=True, help="shown to the operators of the cluster")
        requesting.add_argument("--component", help="suspect of the incident; default: the leading suspect")
        requesting.add_argument(
            "--node", help="name of the node, if neither placement nor topology contains the component"
        )
        requesting.add_argument(
            "--target", help='webhook that receives the request; default: the only target; "": none'
        )
        requesting.add_argument(
            "--proof",
            action=BooleanOptionalAction,
            help="resolve only with proof of repair; default: DOSSIER_REPAIR_PROOF_REQUIRED",
        )
        answering = actions.add_parser("answer")
        answering.add_argument("number", metavar="NUMBER", help="number of the incident")
        answering.add_argument("answer", choices=ANSWERS)
        answering.add_argument("--by", help="person or system that did the work; default: you")
        answering.add_argument("--part", help="with replaced: the new part or its serial number")
        answering.add_argument("--note", default="")
        answering.add_argument("--at", metavar="T", help="RFC 3339; default: now")
        for action in (listed, requesting, answering):
            action.add_argument("--json", action="store_true", help="print JSON")

    def work(self, **options: Any) -> None:
        try:
            found = self._done(options)
        except (IncidentNotFoundError, CommandRefusedError, InvalidValueError) as error:
            raise CommandInputError(str(error)) from error
        except OperationalError as error:
            raise CommandFailedError(f"the database does not answer: {error}") from error
        if options["json"]:
            shown = [_json(one) for one in found]
            self.show([json.dumps(shown, ensure_ascii=False, indent=2)])
        elif not found:
            self.show(["no node is handed to the cluster"])
        else:
            self.show(line for one in found for line in _lines(one, options["action"] == "request"))

    def _done(self, options: dict[str, Any]) -> list[Incident]:
        if options["action"] == "list":
            return handed_over(resolved=options["all"])
        state = queries.get(options["number"]).incident
        actor = shell_operator()
        if options["action"] == "request":
            done = commands.hand_to_cluster(
                state.id,
                options["reason"],
                actor,
                component=options["component"],
                node=options["node"],
                target=options["target"],
                proof_required=options["proof"],
            )
        else:
            if state.remediation is None:
                raise CommandRefusedError(f"#{state.number} was not handed to the cluster")
            done = commands.answer(
                state.id,
                state.remediation.request,
                options["answer"],
                options["by"] or actor.actor.partition(":")[2],
                actor,
                note=options["note"],
                at=_time(options["at"]),
                part=options["part"],
            )
        return [done.incident]


def _time(text: str | None) -> datetime | None:
    try:
        return None if text is None else parse_rfc3339(text)
    except (ValueError, OverflowError) as error:
        raise CommandInputError(f"--at {text}: give an RFC 3339 time such as 2026-11-21T10:00:00Z") from error


def _remediation(state: Incident) -> Remediation:
    assert state.remediation is not None
    return state.remediation


def _json(state: Incident) -> dict[str, Any]:
    found = _remediation(state)
    return {"incident": state.number, "state": state.state, **found.as_json(), "left_open": left_open(state)}


def _lines(state: Incident, with_commands: bool) -> Iterator[str]:
    found = _remediation(state)
    sent = "by hand" if found.target is None else f"through webhook {found.target}"
    yield f"#{state.number} {found.node}: {found.stage}, {found.component}, {sent} ({state.state})"
    if found.proof is not None:
        yield f"  {found.proof['summary']}"
    if (why := left_open(state)) is not None:
        yield f"  {why}"
    if with_commands:
        for one in commands_of(state):
            yield f"  {one['cluster']}: {one['does']}"
            yield f"    {one['command']}"
