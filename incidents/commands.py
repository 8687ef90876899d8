"""Commands on incidents: one function a command, each one transaction: load, decide, append, project.

All raise `InvalidValueError` (a value is wrong: which field and why), `CommandRefusedError` (it does not fit the
incident's state: why; `ForbiddenError` where a person may not do it) or `IncidentNotFoundError`. A command that
another writer overtook is decided again on what that one wrote.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction

from incidents.alerts import resolve as pending_resolutions
from incidents.domain.incident import commands as c
from incidents.domain.incident.commands import Report, Undoable
from incidents.domain.incident.decide import CommandRefusedError, ConcurrentChangeError, Happened
from incidents.domain.incident.state import Incident
from incidents.domain.routing.rules import route
from incidents.domain.values import TITLE_LIMIT, InvalidValueError, Severity
from incidents.incident import merge as merging
from incidents.incident import reported
from incidents.incident import split as splitting
from incidents.incident.models import IncidentRow
from incidents.incident.reported import IdempotencyKey, KeyReusedError
from incidents.incident.repository import (
    CommandResult,
    ExpectedContext,
    IncidentNotFoundError,
    loaded,
    lock_key,
    next_number,
    open_incident_of,
    record,
    record_opening,
    refuse_second,
    seen_from,
)
from incidents.incident.telemetry_horizon import known_until
from incidents.people.permissions import allow, check_account
from incidents.suppression import suppressor
from incidents.teams.models import Team, routing_table
from ingest.commands import retrying
from ingest.queries import Context, Event, now_utc, ordered_id

__all__ = [
    "CommandRefusedError",
    "CommandResult",
    "ConcurrentChangeError",
    "ExpectedContext",
    "Happened",
    "IdempotencyKey",
    "IncidentNotFoundError",
    "InvalidValueError",
    "KeyReusedError",
    "Opened",
    "Report",
    "seen_from",
]


@dataclass(frozen=True, slots=True)
class Opened:
    """Result of a report: a new incident (`opened`), or events on the open incident of its dedup key."""

    opened: bool
    incident: Incident
    position: str
    events: tuple[Event, ...]


def open_incident(report: Report, context: Context, once: IdempotencyKey | None = None) -> Opened:
    """Opens an incident and routes it, or joins the open incident with the report's dedup key.

    A report that came before as this `once` is not recorded again and becomes what it became then. Raises
    KeyReusedError where the key was used for another report.
    """
    allow("open", context)
    return retrying(partial(_report_idempotently, report, context, once))


@transaction.atomic
def _report_idempotently(report: Report, context: Context, once: IdempotencyKey | None) -> Opened:
    if once is None:
        return _open_or_join(report, context)
    now = now_utc()
    if (before := reported.find(once, now)) is not None:
        state = loaded(IncidentRow.objects.select_for_update().get(pk=before.incident))
        return Opened(before.opened, state, str(before.events[-1].position), before.events)
    done = _open_or_join(report, context)
    reported.keep(once, done.incident.id, done.events, now, opened=done.opened)
    return done


def _open_or_join(report: Report, context: Context) -> Opened:
    routing = route(report.subject(now_utc()), routing_table())
    if routing.severity is not None:
        report = replace(report, severity=routing.severity)
    if report.dedup_key is not None:
        lock_key(report.dedup_key)
        if (found := open_incident_of(report.dedup_key)) is not None:
            joined = record(found, c.Join(report), context)
            return Opened(False, joined.incident, joined.position, joined.events)
    opened = record_opening(c.Open(str(ordered_id(now_utc())), next_number(), routing, report), context)
    return Opened(True, opened.incident, opened.position, opened.events)


def acknowledge(incident_id: str, context: Context) -> CommandResult:
    return _carry_out(incident_id, c.Acknowledge(), context)


def unacknowledge(incident_id: str, context: Context) -> CommandResult:
    return _carry_out(incident_id, c.Unacknowledge(), context)


def assign(incident_id: str, owner: str | None, context: Context) -> CommandResult:
    """Raises InvalidValueError where no active account has the name of the owner."""
    command = c.Assign(owner)
    if command.owner is not None:
        check_account("owner", command.owner)
    return _carry_out(incident_id, command, context)


def hand_over(incident_id: str, team: str, reason: str, context: Context) -> CommandResult:
    command = c.HandOver(team, reason)
    slugs = list(Team.objects.values_list("slug", flat=True))
    if command.team not in slugs:
        raise InvalidValueError("team", f"no such team; use {', '.join(slugs)}")
    return _carry_out(incident_id, command, context)


def accept(incident_id: str, context: Context) -> CommandResult:
    return _carry_out(incident_id, c.Accept(), context)


def bounce(incident_id: str, reason: str, context: Context) -> CommandResult:
    """Back to the team that handed it over."""
    _refuse_gone(incident_id)
    return _carry_out(incident_id, c.Bounce(reason), context)


def _refuse_gone(incident_id: str) -> None:
    """An incident does not go back to a team that was removed."""
    row = IncidentRow.objects.filter(pk=incident_id).only("number", "handed_from").first()
    if row is not None and row.handed_from and not Team.objects.filter(slug=row.handed_from).exists():
        raise CommandRefusedError(
            f"{row.handed_from}, which #{row.number} came from, was removed; hand it over to another team"
        )


def snooze(incident_id: str, until: datetime | None, reason: str, context: Context) -> CommandResult:
    """Until a time, or with None until it changes; it wakes when it gets worse in any case."""
    return _carry_out(incident_id, c.Snooze(until, reason), context)


def undo(incident_id: str, what: Undoable | None, context: Context) -> CommandResult:
    """Takes back what can be: a merge, a snooze, a hand-over that nobody has answered, or, if it is asked for, that the
    incident was split off."""
    allow("undo", context, incident_id)
    return retrying(partial(_undo, incident_id, c.Undo(what), context))


@transaction.atomic
def _undo(incident_id: str, command: c.Undo, context: Context) -> CommandResult:
    row = IncidentRow.objects.filter(pk=incident_id).only("merged_into", "state").first()
    if row is not None and row.merged_into is not None and command.what in (None, "merge"):
        return merging.split(incident_id, "", context)
    if command.what == "split_off":
        return splitting.put_back(incident_id, context)
    if command.what == "hand_over" or (command.what is None and row is not None and row.state != "snoozed"):
        _refuse_gone(incident_id)
    if row is not None and row.state == "snoozed" and command.what in (None, "snooze"):
        command = replace(command, overriding=suppressor.overriding(incident_id, now_utc()))
    return record(incident_id, command, context)


def merge(incident_id: str, into: str, reason: str, context: Context) -> CommandResult:
    """Into the incident with the id `into`, where its alerts, reports and findings go from then on."""
    allow("merge", context, incident_id)
    return retrying(partial(merging.merge, incident_id, into, reason, context))


def split(incident_id: str, reason: str, context: Context) -> CommandResult:
    """Takes a merged incident out of the one that it was merged into."""
    allow("split", context, incident_id)
    return retrying(partial(merging.split, incident_id, reason, context))


def split_off(
    incident_id: str, alerts: object, context: Context, title: str = "", reason: str = ""
) -> CommandResult:
    """Takes alerts (ids) out of the incident, into a new one; what was recorded of that. `undo` puts them back."""
    allow("split_off", context, incident_id)
    chosen = splitting.check_alerts(alerts)
    return retrying(partial(splitting.split_off, incident_id, chosen, title, reason, context))


def comment(
    incident_id: str, text: str, context: Context, links: Sequence[Mapping[str, str]] = ()
) -> CommandResult:
    """In Markdown, with what is attached to it as links."""
    return _carry_out(incident_id, c.Comment(text, tuple(links)), context)


def set_severity(incident_id: str, severity: Severity, context: Context) -> CommandResult:
    return _carry_out(incident_id, c.SetSeverity(severity), context)


def set_title(incident_id: str, title: str, context: Context) -> CommandResult:
    return _carry_out(incident_id, c.SetTitle(title), context)


def link(incident_id: str, href: str, text: str, context: Context) -> CommandResult:
    return _carry_out(incident_id, c.Link(href, text), context)


def relate(incident_id: str, other: str, context: Context) -> CommandResult:
    """Links two incidents that have to do with each other, on both of them."""
    if incident_id == other:
        raise InvalidValueError("incident", "is this incident itself")
    allow("link", context, incident_id)
    return retrying(partial(_relate, incident_id, other, context))


@transaction.atomic
def _relate(incident_id: str, other: str, context: Context) -> CommandResult:
    rows = IncidentRow.objects.filter(pk__in=[incident_id, other]).order_by("number").select_for_update()
    links = {str(row.pk): _link_to(row) for row in rows}
    if len(links) < 2:
        raise IncidentNotFoundError(f"there is no incident {other}")
    record(other, links[incident_id], context)
    return record(incident_id, links[other], context)


def _link_to(row: IncidentRow) -> c.Link:
    return c.Link(f"{settings.PUBLIC_URL}/incidents/{row.number}", f"#{row.number} {row.title}"[:TITLE_LIMIT])


def attach_evidence(
    incident_id: str, evidence: Sequence[Mapping[str, Any]], context: Context
) -> CommandResult:
    return _carry_out(incident_id, c.AttachEvidence(tuple(evidence)), context)


def resolve(
    incident_id: str, confirmed_cause: str, note: str, context: Context, without_proof: str = ""
) -> CommandResult:
    """`confirmed_cause` is a component, a class of causes, or "none" when nothing was at fault; `without_proof` the
    reason not to wait for the proof of repair that the incident demands."""
    if without_proof:
        allow("waive_proof", context, incident_id)
    region = IncidentRow.objects.filter(pk=incident_id).values_list("region", flat=True).first()
    command = c.Resolve(confirmed_cause, note, known_until(region, now_utc()), without_proof)
    return _carry_out(incident_id, command, context)


def without_team(slug: str, teams: Collection[str]) -> str | None:
    """Reason why an incident is not opened again without its team: nobody would be called for it."""
    if slug in teams:
        return None
    return f"its team {slug} was removed; first restore that team, or create one with that slug"


def reopen(incident_id: str, reason: str, context: Context) -> CommandResult:
    allow("reopen", context, incident_id)
    return retrying(partial(_reopen, incident_id, c.Reopen(reason), context))


@transaction.atomic
def _reopen(incident_id: str, command: c.Reopen, context: Context) -> CommandResult:
    row = IncidentRow.objects.filter(pk=incident_id).first()
    if row is not None and row.state == "resolved":
        # Locked, so that the team is not removed meanwhile: a team with unresolved incidents stays.
        own = Team.objects.select_for_update(no_key=True).filter(slug=row.team)
        if (why := without_team(row.team, own.values_list("slug", flat=True))) is not None:
            raise CommandRefusedError(f"#{row.number} stays resolved: {why}")
        refuse_second(row)
    return pending_resolutions.resume(record(incident_id, command, context))


_NAMES: Mapping[type[c.Command], str] = {
    c.Accept: "accept",
    c.Acknowledge: "acknowledge",
    c.Assign: "assign",
    c.AttachEvidence: "attach_evidence",
    c.Bounce: "bounce",
    c.Comment: "comment",
    c.HandOver: "hand_over",
    c.Link: "link",
    c.Resolve: "resolve",
    c.SetSeverity: "set_severity",
    c.SetTitle: "set_title",
    c.Snooze: "snooze",
    c.Unacknowledge: "unacknowledge",
}


def _carry_out(incident_id: str, command: c.Command, context: Context) -> CommandResult:
    allow(_NAMES[type(command)], context, incident_id)
    return retrying(partial(_in_one_transaction, incident_id, command, context))


@transaction.atomic
def _in_one_transaction(incident_id: str, command: c.Command, context: Context) -> CommandResult:
    return record(incident_id, command, context)
