"""Actions of people on incidents: one form each, one event each, and a plain reason for a refusal."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any
from urllib.parse import urlencode

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.http import require_POST

from frontend.time_input import parse_moment
from frontend.views.incident.incident import Problem, carried, render_incident
from frontend.views.pages import context_of, page
from incidents import commands, queries
from incidents.commands import CommandRefusedError, ConcurrentChangeError, InvalidValueError
from incidents.domain.incident.bulk import Step, way_back
from incidents.domain.permissions import ForbiddenError
from incidents.escalation.commands import escalate
from incidents.proposals import commands as proposals
from incidents.questions import commands as questions
from incidents.remediation import commands as remediation
from ingest.queries import Context, Event

Form = Any  # the request's POST data


def cause_of(form: Form) -> str:
    chosen = str(form.get("cause", ""))
    if chosen == "":
        raise InvalidValueError("cause", "choose a root cause or “False alarm”")
    return str(form.get("other", "")).strip() if chosen == "other" else chosen


def until_of(form: Form) -> datetime | None:
    """Until when an incident is put aside: after so many hours, at a time, or None until it changes."""
    chosen = str(form.get("for", ""))
    if chosen == "change":
        return None
    if chosen == "time":
        try:
            return parse_moment(str(form.get("time", "")))
        except ValueError:
            raise InvalidValueError("time", "must be a date and a time") from None
    if chosen not in HOURS:
        raise InvalidValueError("duration", "has to be chosen")
    return timezone.now() + timedelta(hours=int(chosen))


def _linked(incident_id: str, form: Form, context: Context) -> commands.CommandResult:
    """To an address, or to the incident whose number is given."""
    to = str(form.get("href", "")).strip()
    if to.removeprefix("#").isdecimal():
        return commands.relate(incident_id, incident_of({"into": to}), context)
    return commands.link(incident_id, to, form.get("text", ""), context)


def _attached(form: Form) -> list[dict[str, str]]:
    href = str(form.get("href", "")).strip()
    return [{"href": href, "text": str(form.get("link_text", ""))}] if href else []


def _handed_to_cluster(incident_id: str, form: Form, context: Context) -> commands.CommandResult:
    return remediation.hand_to_cluster(
        incident_id,
        form.get("reason", ""),
        context,
        component=form.get("component") or None,
        node=form.get("node") or None,
        target=form.get("target"),
        proof_required=form.get("proof_required") == "true",
    )


def _answered(incident_id: str, form: Form, context: Context) -> commands.CommandResult:
    """By the person who fills the form in; the new part counts where one was replaced."""
    answer = form.get("answer", "")
    return remediation.answer(
        incident_id,
        form.get("request", ""),
        answer,
        context.actor.removeprefix("user:"),
        context,
        note=form.get("note", ""),
        part=(str(form.get("part", "")).strip() or None) if answer == "replaced" else None,
    )


def incident_of(form: Form) -> str:
    """The id of the incident that a form names by its number, with or without #."""
    try:
        return queries.get(str(form.get("into", "")).strip().removeprefix("#")).incident.id
    except queries.IncidentNotFoundError as error:
        raise InvalidValueError("into", str(error)) from None


UNDOING = "undoing"
"""Field of the button that undoes an action: the undo of an undo is not offered."""
HOURS = ("1", "4", "24", "72")
Verb = Callable[[str, Form, Context], Any]
VERBS: dict[str, tuple[Verb, str]] = {
    "acknowledge": (lambda i, _, c: commands.acknowledge(i, c), "Acknowledged"),
    "unacknowledge": (lambda i, _, c: commands.unacknowledge(i, c), "Unacknowledged"),
    "assign": (lambda i, f, c: commands.assign(i, f.get("owner", "").strip() or None, c), "Assigned"),
    "hand_over": (
        lambda i, f, c: commands.hand_over(i, f.get("team", ""), f.get("reason", ""), c),
        "Handed over",
    ),
    "accept": (lambda i, _, c: commands.accept(i, c), "Accepted"),
    "bounce": (lambda i, f, c: commands.bounce(i, f.get("reason", ""), c), "Rejected"),
    "snooze": (
        lambda i, f, c: commands.snooze(i, until_of(f), f.get("reason", ""), c),
        "Snoozed",
    ),
    "escalate": (lambda i, f, c: escalate(i, f.get("reason", ""), c), "Escalated"),
    "merge": (lambda i, f, c: commands.merge(i, incident_of(f), f.get("reason", ""), c), "Merged"),
    "split": (lambda i, _, c: commands.split(i, "", c), "Split off"),
    "put_back": (
        lambda i, _, c: commands.undo(i, "split_off", c),
        "Split undone, alerts moved back from",
    ),
    "set_title": (lambda i, f, c: commands.set_title(i, f.get("title", ""), c), "Title set for"),
    "link": (lambda i, f, c: _linked(i, f, c), "Link added to"),
    "undo": (lambda i, f, c: commands.undo(i, f.get("what") or None, c), "Undone for"),
    "set_severity": (
        lambda i, f, c: commands.set_severity(i, f.get("severity", ""), c),
        "Severity set for",
    ),
    "comment": (lambda i, f, c: commands.comment(i, f.get("text", ""), c, _attached(f)), ""),
    "resolve": (
        lambda i, f, c: commands.resolve(
            i, cause_of(f), f.get("note", ""), c, str(f.get("without_proof", "")).strip()
        ),
        "Resolved",
    ),
    "hand_to_cluster": (lambda i, f, c: _handed_to_cluster(i, f, c), "Handed to the cluster:"),
    "answer_remediation": (lambda i, f, c: _answered(i, f, c), "Recorded for"),
    "request_probe": (lambda i, f, c: questions.request(i, f.get("question", ""), c), "Agents asked for"),
    "answer_question": (
        lambda i, f, c: questions.answer(
            i,
            f.get("question", ""),
            f.get("outcome", ""),
            c.actor.removeprefix("user:"),
            c,
            note=f.get("note", ""),
        ),
        "Answer recorded for",
    ),
    "accept_proposal": (
        lambda i, f, c: proposals.accept(i, f.get("proposal", ""), c),
        "Proposal accepted for",
    ),
    "decline_proposal": (
        lambda i, f, c: proposals.decline(i, f.get("proposal", ""), f.get("reason", ""), c),
        "Proposal declined for",
    ),
    "reopen": (lambda i, f, c: commands.reopen(i, f.get("reason", ""), c), "Reopened"),
}
"""Verb: the command, and what is said when it is done ("" says nothing)."""


@page
@require_POST
def act(request: HttpRequest, number: int, verb: str) -> HttpResponse:
    """Carry out one verb on one incident, then go back to where it was asked."""
    if verb not in VERBS:
        raise Http404(verb)
    command, done = VERBS[verb]
    here = f"{reverse('incident', args=[number])}{carried(request)}"
    target = safe_next(request, here)
    try:
        before = queries.get(str(number)).incident
        made = command(before.id, request.POST, context_of(request))
    except (CommandRefusedError, InvalidValueError) as error:
        reason = (
            error.reason
            if isinstance(error, CommandRefusedError)
            else f"{error.field.capitalize()} {error.reason}"
        )
        if target.partition("?")[0] != here.partition("?")[0]:
            messages.error(request, f"Not done: {reason}.")
            return HttpResponseRedirect(target)
        typed = {name: str(value) for name, value in request.POST.items()}
        status = (
            403
            if isinstance(error, ForbiddenError)
            else 409
            if isinstance(error, CommandRefusedError)
            else 400
        )
        others = error.meanwhile if isinstance(error, ConcurrentChangeError) else ()
        return render_incident(request, number, Problem(verb, f"{reason}.", typed, others), status)
    if done:
        words = undone_words(made.events, number) if verb == "undo" else f"{done} #{number}"
        back = None if UNDOING in request.POST else way_back(verb, before)
        messages.success(request, words, extra_tags=undo_tag(number, back) if back else "")
    return HttpResponseRedirect(target)


def undo_tag(number: int, back: Step) -> str:
    """Tag of a message whose button undoes an action: `snooze` of 12 is undone by `undo/12?what=snooze`."""
    fields = {name: value or "" for name, value in back.fields.items()}
    return f"{back.verb}/{number}?{urlencode(fields)}"


def undone_words(events: Sequence[Event], number: int) -> str:
    """Effect of an undo, by the events that it recorded: `Notifications of #1 resumed.`"""
    types = {event.type: event.body for event in events}
    if (unsnoozed := types.get("incident.unsnoozed")) is not None:
        return f"Notifications of #{number} resumed." if unsnoozed["why"] else f"Snooze of #{number} ended."
    if "incident.reassignment_undone" in types:
        return f"Hand-over of #{number} undone."
    if "incident.unmerged" in types:
        return f"Merge of #{number} undone. Its alerts and findings belong to it again."
    return f"Undone for #{number}."


def safe_next(request: HttpRequest, default: str) -> str:
    """Address that the form asks to go to afterwards, if it is a page of ours."""
    address = request.POST.get("next", "")
    safe = url_has_allowed_host_and_scheme(address, allowed_hosts=None) and address.startswith("/")
    return address if safe else default
