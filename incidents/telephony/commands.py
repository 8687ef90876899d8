"""Answers of people to messages by SMS and phone, carried out in their name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from django.db import transaction

from incidents import commands, queries
from incidents.domain.telephony import Answer, SmsReply
from incidents.domain.values import CommandRefusedError, InvalidValueError
from incidents.escalation.commands import escalate
from incidents.incident.repository import IncidentNotFoundError
from incidents.notifications.answer_links import LinkRefusedError, use
from incidents.notifications.models import (
    Notification,
)
from ingest.queries import Context, StreamVersionError, now_utc

SNOOZE: Final = timedelta(hours=1)


_DONE: Final[Mapping[Answer, str]] = {
    "acknowledge": "Acknowledged",
    "hand_over": "Handed over",
    "snooze": "Snoozed for one hour",
}


def carry_out(calls: Sequence[Notification], verb: Answer, words: SmsReply | None, how: str) -> str:
    """Carry an answer out on each incident of a message, in the name of the person that it called; the results as
    sentences."""
    return " ".join(_done(call, verb, words, how) for call in calls)


def _done(call: Notification, verb: Answer, words: SmsReply | None, how: str) -> str:
    try:
        number = queries.get(str(call.incident)).incident.number
    except IncidentNotFoundError:
        return "The incident no longer exists."
    try:
        with transaction.atomic():
            use(call, verb)
            _act(str(call.incident), verb, words, how, Context(f"user:{call.person}"))
    except LinkRefusedError:
        return f"Incident {number}: this message was answered before."
    except StreamVersionError:
        return f"Incident {number}: changed at the same moment, try again."
    except CommandRefusedError as error:
        return f"Incident {number}, not done: {error.reason}."
    except InvalidValueError as error:
        return f"Incident {number}, not done: {error.field} {error.reason}."
    return f"{_DONE[verb]}: incident {number}."


def _act(incident: str, verb: Answer, words: SmsReply | None, how: str, context: Context) -> None:
    """A hand-over without a team calls the next people of the escalation policy."""
    if verb == "acknowledge":
        commands.acknowledge(incident, context)
    elif verb == "snooze":
        commands.snooze(incident, now_utc() + SNOOZE, how, context)
    elif words is not None and words.words:
        commands.hand_over(incident, words.team, words.reason or how, context)
    else:
        escalate(incident, f"handed over to the next person: {how}", context)
