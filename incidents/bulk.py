"""One action on several incidents, each decided and recorded for itself: for the console and the API alike.

Ends half-way without harm: what was done is done, and what was not reached is as it was.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from incidents import commands, queries
from incidents.commands import CommandRefusedError, CommandResult, InvalidValueError
from incidents.domain.incident.bulk import BACK, VERBS, Step, way_back
from incidents.domain.incident.state import Incident
from incidents.domain.permissions import ForbiddenError
from incidents.escalation.commands import escalate
from incidents.suppression import silences
from ingest.queries import Context

MOST_AT_ONCE: Final = 1000
"""Incidents that one action of somebody reaches."""
OWN: Final = "own"
"""As a confirmed cause: of each incident the component that it names."""

Fields = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class SilenceResult:
    """The position of the incident after a silence was made or ended, and the id of that silence."""

    position: str
    silence: str


def _silenced(incident: str, fields: Fields, context: Context) -> SilenceResult:
    if fields.get("until") is None:
        raise InvalidValueError("until", "must be a time with an offset, such as 2026-11-21T10:00:00Z")
    try:
        row = silences.silence_incident(incident, fields["until"], fields.get("comment", ""), context)
    except InvalidValueError as error:
        field = {"ends_at": "until"}.get(error.field, error.field)
        raise InvalidValueError(field, error.reason) from error
    return SilenceResult(queries.get(incident).position, str(row.pk))


def _silence_ended(incident: str, fields: Fields, context: Context) -> SilenceResult:
    row = silences.find_silence(str(fields.get("silence", "")))
    if row is None:
        raise InvalidValueError("silence", "must be the id of a silence")
    if not silences.end_silence(row, context):
        raise CommandRefusedError("the silence had already ended")
    return SilenceResult(queries.get(incident).position, str(row.pk))


COMMANDS: Final[Mapping[str, Callable[[str, Fields, Context], CommandResult | SilenceResult]]] = {
    "acknowledge": lambda i, _, c: commands.acknowledge(i, c),
    "unacknowledge": lambda i, _, c: commands.unacknowledge(i, c),
    "assign": lambda i, f, c: commands.assign(i, f["owner"], c),
    "hand_over": lambda i, f, c: commands.hand_over(i, f["team"], f["reason"], c),
    "snooze": lambda i, f, c: commands.snooze(i, f.get("until"), f.get("reason", ""), c),
    "set_severity": lambda i, f, c: commands.set_severity(i, f["severity"], c),
    "resolve": lambda i, f, c: commands.resolve(i, f["confirmed_cause"], f.get("note", ""), c),
    "reopen": lambda i, f, c: commands.reopen(i, f.get("reason", ""), c),
    "escalate": lambda i, f, c: escalate(i, f["reason"], c),
    "merge": lambda i, f, c: commands.merge(i, f["into"], f.get("reason", ""), c),
    "undo": lambda i, f, c: commands.undo(i, f.get("what"), c),
    "silence": lambda i, f, c: _silenced(i, f, c),
    "end_silence": lambda i, f, c: _silence_ended(i, f, c),
}
"""Command of each verb, from its fields, read; `until` is a time or None, of a silence always a time; `into` is the
id of an incident."""
assert set(COMMANDS) == {*VERBS, *BACK}


@dataclass(frozen=True, slots=True)
class Done:
    id: str
    number: int
    position: str
    undo: Step | None


@dataclass(frozen=True, slots=True)
class NotDone:
    """`reference` is how the incident was named, `status` what the API answers for one incident alone."""

    reference: str
    status: int
    reason: str


@dataclass(slots=True)
class BulkResult:
    done: list[Done] = field(default_factory=list)
    refused: list[NotDone] = field(default_factory=list)


def act_on(references: Iterable[str], verb: str, fields: Fields, context: Context) -> BulkResult:
    """Carry out a verb on incidents, named by id or number, one after the other; the target of a merge is left out.

    Raises InvalidValueError where there is no such verb, or where the fields are wrong and nothing was done yet.
    """
    if verb not in COMMANDS:
        raise InvalidValueError("action", f"must be one of {', '.join(VERBS)}")
    outcome = BulkResult()
    for reference in dict.fromkeys(references):
        try:
            before = queries.get(reference).incident
            if verb == "merge" and before.id == fields["into"]:
                continue
            recorded = COMMANDS[verb](before.id, _of_this_incident(verb, fields, before), context)
            made = recorded.silence if isinstance(recorded, SilenceResult) else None
            undo = way_back(verb, before, made)
            outcome.done.append(Done(before.id, before.number, recorded.position, undo))
        except queries.IncidentNotFoundError as error:
            outcome.refused.append(NotDone(reference, 404, str(error)))
        except CommandRefusedError as error:
            outcome.refused.append(
                NotDone(reference, 403 if isinstance(error, ForbiddenError) else 409, error.reason)
            )
        except InvalidValueError as error:
            if error.field != OWN and not outcome.done:
                raise
            outcome.refused.append(NotDone(reference, 400, error.reason))
    return outcome


def _of_this_incident(verb: str, fields: Fields, incident: Incident) -> Fields:
    if verb != "resolve" or fields["confirmed_cause"] != OWN:
        return fields
    if incident.component is None:
        raise InvalidValueError(OWN, "the incident names no component; enter the confirmed cause")
    return {**fields, "confirmed_cause": incident.component}


def matching(filters: Sequence[queries.Filter], order: str) -> tuple[list[int], bool]:
    """The numbers of all incidents that filters let through, as far as one action goes, and whether there are more."""
    numbers: list[int] = []
    cursor: str | None = None
    while len(numbers) <= MOST_AT_ONCE:
        found = queries.list_incidents(filters, order, cursor, queries.PAGE_LIMIT)
        numbers += [view.incident.number for view in found.items]
        cursor = found.next
        if cursor is None:
            break
    return numbers[:MOST_AT_ONCE], len(numbers) > MOST_AT_ONCE
