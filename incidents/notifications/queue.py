"""The queue of messages: plan a row for each contact method of a call, then claim due rows as messages, under
a lease.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Literal, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, Max, OuterRef, Q

from incidents.domain.notifications.delivery import (
    LONGEST_WAIT,
    QUIET,
    Due,
    Kind,
    Line,
    Method,
    NotifiedIncident,
    Send,
    Stop,
    Wait,
    judge,
    steps,
)
from incidents.domain.notifications.message import Message, MessageLine, compose
from incidents.domain.notifications.reachability import NO_METHOD
from incidents.domain.values import Severity
from incidents.incident.models import IncidentRow
from incidents.notifications.answer_links import link_of
from incidents.notifications.models import CALL, OVER, ContactMethod, Notification, NotificationDelivery
from incidents.notifications.push_key import push_private_key
from incidents.notifications.recipients import Reachable, channel, method_of, people
from incidents.notifications.results import (
    SENDING,
    Notes,
    end,
    in_order,
    planned,
    queue_key,
    reconsider,
    save_ended,
    save_locked,
    shown,
)
from ingest.commands import retrying
from ingest.db.database import columns, insert, insert_new, lease_is_over
from ingest.queries import Context

# Planner
# ----------------------------------------------------------------------------------------------------------
CALLS_AT_ONCE = 1_000


class IncidentBrief(NamedTuple):
    """Fields of an incident that are needed here; its row is wide."""

    number: int
    severity: Severity


def plan_new(now: datetime, limit: int = CALLS_AT_ONCE) -> int:
    """Plan calls that have no plan yet; how many."""
    return retrying(partial(_plan, now, limit))


@transaction.atomic
def _plan(now: datetime, limit: int) -> int:
    new = Notification.objects.filter(state="new").order_by("made_at")[:limit]
    rows = list(new.select_for_update(skip_locked=True))
    known = people(row.person for row in rows if row.person is not None)
    incidents = _incidents(rows)
    fresh, ended, notes = list[NotificationDelivery](), list[Notification](), Notes()
    for row in sorted(rows, key=lambda row: _number(incidents, row)):
        incident = incidents.get(row.incident)
        made, problem = _planned(row, incident, known)
        fresh += made
        if made:
            row.state = "going"
        else:
            end(row, "given_up", problem, now, notes)
            ended.append(row)
    insert(NotificationDelivery, [columns(one, SENDING) for one in fresh])
    going = [row.pk for row in rows if row.state == "going"]
    Notification.objects.filter(pk__in=going).update(state="going")
    save_ended(ended)
    notes.record()
    return len(rows)


def _planned(
    row: Notification, incident: IncidentBrief | None, known: Mapping[str, Reachable]
) -> tuple[list[NotificationDelivery], str]:
    if incident is None:
        return [], "no such incident"
    if row.about == OVER:
        return _as_before(row), "the contact method was removed"
    return _addressed(row) if row.person is None else _called(row, incident, known.get(row.person))


def _incidents(rows: Iterable[Notification]) -> dict[UUID, IncidentBrief]:
    found = IncidentRow.objects.filter(pk__in={row.incident for row in rows})
    pairs = found.values_list("pk", "number", "severity")
    return {pk: IncidentBrief(number, severity) for pk, number, severity in pairs}  # type: ignore[arg-type]


def _number(incidents: Mapping[UUID, IncidentBrief], row: Notification) -> int:
    incident = incidents.get(row.incident)
    return 0 if incident is None else incident.number


def _called(
    row: Notification, incident: IncidentBrief, known: Reachable | None
) -> tuple[list[NotificationDelivery], str]:
    if known is None:
        return [], f"no active account {row.person}"
    found = steps(known.person, incident.severity, row.urgent, row.made_at)
    return planned(row, found, known), NO_METHOD


def _as_before(row: Notification) -> list[NotificationDelivery]:
    """The methods by which the calls that are over were sent, each once, at once."""
    about = {"incident": row.incident, "person": row.person, "address_ref": row.address_ref}
    calls = Notification.objects.filter(**about).exclude(about=OVER)
    sent = NotificationDelivery.objects.filter(notification__in=calls, state="sent").order_by(
        "ended_at", "pk"
    )
    latest = {one.label: one for one in sent if one.kind != "voice"}  # no call only to say that it is over
    return [
        NotificationDelivery(
            notification=row,
            place=place,
            source=one.source,
            method_id=one.method_id,
            label=one.label,
            kind=one.kind,
            queue=one.queue,
            at=row.made_at,
            next_at=row.made_at,
        )
        for place, one in enumerate(latest.values())
    ]


def _addressed(row: Notification) -> tuple[list[NotificationDelivery], str]:
    """A call of an address: a shared channel by its name, or what was given."""
    ref, method = row.address_ref, channel(row.address_ref)
    if method is None and "://" not in ref:
        return [], f"no channel {ref[:60]}"
    kind, address = (row.kind, ref) if method is None else (method.kind, method.address)
    sending = NotificationDelivery(
        notification=row,
        place=0,
        source="direct" if method is None else "method",
        method=method,
        label=shown(kind, ref) if method is None else method.name,
        kind=kind,
        queue=queue_key(kind, address),
        at=row.made_at,
        next_at=row.made_at,
    )
    return [sending], ""


# Queue
# ----------------------------------------------------------------------------------------------------------
LEASE = timedelta(seconds=90)
"""Longest time of a message from its claim to its record before another process may send it."""
AT_ONCE = 2_000
Target = tuple[str, str]
"""Recipient (a person, or "" for an address) and method."""


@dataclass(frozen=True, slots=True)
class Outgoing:
    """A message that is to be sent now. `address` may be secret; empty where there is none any more."""

    id: uuid.UUID
    queue: str
    kind: Kind
    address: str
    secret: str
    message: Message
    deliveries: tuple[tuple[int, int], ...]
    holder: int | None = None


class Pending(NamedTuple):
    """Work of a round: calls without a plan, messages that are due or under way, messages that wait for later."""

    new: bool
    due: bool
    later: bool


_PENDING = (
    f"SELECT EXISTS (SELECT FROM {Notification._meta.db_table} WHERE state = 'new'),"
    f" EXISTS (SELECT FROM {NotificationDelivery._meta.db_table} WHERE state = 'waiting' AND next_at <= %s),"
    f" EXISTS (SELECT FROM {NotificationDelivery._meta.db_table} WHERE state = 'waiting' AND next_at > %s)"
)


def pending(now: datetime) -> Pending:
    """One statement, so that a process that looks twice a second costs nothing where nothing waits."""
    with connection.cursor() as cursor:
        cursor.execute(_PENDING, (now, now))
        return Pending(*cursor.fetchone())


Room = Callable[[str], int]
"""Number of messages that a queue takes now."""


def claim(now: datetime, full: Collection[str], room: Room, holder: int | None = None) -> list[Outgoing]:
    """Messages to send now, as many as their queues take; those that are `full` are not looked at.

    They are the `holder`'s (a number of `presence`) until their lease ends, or it is gone.
    """
    return retrying(partial(_claim, now, full, room, holder))


def stop_answered(now: datetime) -> int:
    """End what waits for later on incidents that somebody has answered; how many steps."""
    return retrying(partial(_stop_answered, now))


def wake_for_critical(now: datetime) -> int:
    """Have what quiet hours hold go now where the incident has become critical since: how many steps."""
    critical = IncidentRow.objects.filter(pk=OuterRef("notification__incident"), severity="critical")
    asleep = NotificationDelivery.objects.filter(
        _FREE, Exists(critical), next_at__gt=now, delay_reason__startswith=QUIET
    )
    asleep = asleep.filter(notification__about=CALL)
    return asleep.update(next_at=now, delay_reason="")


def wake_for(person: str, now: datetime) -> int:
    """Have what quiet hours hold for somebody looked at now, because those have changed: how many steps."""
    asleep = NotificationDelivery.objects.filter(
        _FREE, notification__person=person, delay_reason__startswith=QUIET
    )
    return asleep.filter(next_at__gt=now).update(next_at=now, delay_reason="")


def catch_up(now: datetime) -> int:
    """Have what waits for later since a time that is still to come, because the clock was set back, go now, and what is
    to be tried again later than any receiver may ask for: how many steps. Clocks of machines differ by less than a
    minute."""
    ahead = now + timedelta(minutes=1)
    made = Notification.objects.filter(pk=OuterRef("notification"), made_at__gt=ahead)
    tried = Q(attempts__gt=0, next_at__gt=ahead + LONGEST_WAIT)
    return NotificationDelivery.objects.filter(_FREE, Exists(made) | tried, next_at__gt=ahead).update(
        next_at=now
    )


_FREE = Q(state="waiting") & Q(lease_until__isnull=True)


@transaction.atomic
def _stop_answered(now: datetime) -> int:
    incident = IncidentRow.objects.filter(pk=OuterRef("notification__incident"))
    made = OuterRef("notification__made_at")
    over = (
        Q(state__in=("resolved", "snoozed", "acknowledged"))
        | Q(merged_into__isnull=False)
        | Q(team_since__gt=made)
    )
    elsewhere = Exists(incident.exclude(team=OuterRef("notification__team"))) & ~Q(notification__team="")
    waiting = NotificationDelivery.objects.filter(_FREE, next_at__gt=now, notification__about=CALL)
    answered = waiting.filter(Exists(incident.filter(over)) | elsewhere)
    return len(_Judging(_locked(answered.order_by("next_at")), now).stop())


@transaction.atomic
def _claim(now: datetime, full: Collection[str], room: Room, holder: int | None) -> list[Outgoing]:
    due = NotificationDelivery.objects.filter(state="waiting", next_at__lte=now).exclude(queue__in=full)
    free = due.filter(Q(lease_until__isnull=True) | lease_is_over(now, LEASE))
    return _Judging(_locked(free.order_by("next_at")), now).claim(room, holder)


def _locked(due: Any) -> list[NotificationDelivery]:
    """Both the step and its call, or neither: whoever records what became of another step has the call."""
    rows = due.select_related("notification").select_for_update(skip_locked=True, of=("self", "notification"))
    return list(rows[:AT_ONCE])


class _Judging:
    """Steps that the caller's transaction has locked, and all that decides about them."""

    def __init__(self, due: Sequence[NotificationDelivery], now: datetime) -> None:
        self.due, self.now, self.notes = due, now, Notes()
        self.calls = {one.notification_id: one.notification for one in due}
        self.incidents = _known_incidents(call.incident for call in self.calls.values())
        self.people = people(row.person for row in self.calls.values() if row.person is not None)
        self.rows = ContactMethod.objects.in_bulk({one.method_id for one in due if one.method_id is not None})
        self.methods = {one.pk: self._method(one) for one in due}
        self.recipients = _recipients_of(self.calls.values())
        self.lines = _lines(due, self.methods, now)

    def claim(self, room: Room, holder: int | None) -> list[Outgoing]:
        going: dict[object, list[NotificationDelivery]] = {}
        ended, delayed = list[tuple[NotificationDelivery, str]](), list[NotificationDelivery]()
        for one in in_order(self.due, self.calls):
            match self._judge(one):
                case Send():
                    going.setdefault(one.message if one.attempts else target_of(one), []).append(one)
                case Wait(until, why, bundling):
                    self._delay(one, until, why, bundling)
                    delayed.append(one)
                case Stop(why):
                    ended.append((one, why))
        save_locked(delayed, ("next_at", "delay_reason"))
        self._end(ended)
        left: dict[str, int] = {}
        leased = []
        for together in going.values():
            queue = together[0].queue
            left[queue] = left.get(queue, room(queue)) - 1
            if left[queue] >= 0:
                leased.append(self._lease(together, holder))
        return leased

    def stop(self) -> list[NotificationDelivery]:
        ended = []
        for one in in_order(self.due, self.calls):
            verdict = self._judge(one)
            if isinstance(verdict, Stop):
                ended.append((one, verdict.why))
        self._end(ended)
        return [one for one, _ in ended]

    def _judge(self, one: NotificationDelivery) -> Send | Stop | Wait:
        row, incident = one.notification, self.incidents.get(one.notification.incident)
        if incident is None:
            return Stop("no such incident")
        person = self._reachable(row)
        if row.person is not None and person is None:
            return Stop(f"no active account {row.person}")
        due = Due(
            method=self.methods[one.pk],
            at=one.at,
            made_at=row.made_at,
            urgent=row.urgent,
            first=(row.person, row.address_ref, row.incident) not in self.recipients,
            attempts=one.attempts,
            team=row.team,
            over=row.about == OVER,
        )
        line = self.lines.get(target_of(one), Line())
        return judge(due, incident.incident, None if person is None else person.person, line, self.now)

    def _reachable(self, row: Notification) -> Reachable | None:
        return None if row.person is None else self.people.get(row.person)

    def _method(self, one: NotificationDelivery) -> Method:
        kind: Kind = one.kind  # type: ignore[assignment]
        row = self._row(one)
        return Method(one.label, kind) if row is None else method_of(row)

    def _row(self, one: NotificationDelivery) -> ContactMethod | None:
        return None if one.method_id is None else self.rows.get(one.method_id)

    def _delay(self, one: NotificationDelivery, until: datetime, why: str, bundling: bool) -> None:
        """Recorded on the incident once for each delay, not at every look."""
        if not bundling and not one.delay_reason:
            self.notes.add(one.notification, one, "delayed", why, until=until)
        one.next_at, one.delay_reason = until, one.delay_reason if bundling else why

    def _end(self, ended: Sequence[tuple[NotificationDelivery, str]]) -> None:
        for one, why in ended:
            one.state, one.why, one.ended_at, one.lease_until = "stopped", why, self.now, None
        save_locked([one for one, _ in ended], ("state", "why", "ended_at", "lease_until"))
        reconsider({one.notification_id for one, _ in ended}, self.calls, self.now, self.notes)
        self.notes.record()

    def _lease(self, together: Sequence[NotificationDelivery], holder: int | None) -> Outgoing:
        first = together[0]
        message = first.message or uuid.uuid4()
        keys = [one.pk for one in together]
        NotificationDelivery.objects.filter(pk__in=keys).update(
            lease_until=self.now + LEASE,
            holder=holder,
            message=message,
            receipt_error="",
            attempts=F("attempts") + 1,
        )
        address, secret = self._address(first)
        entries = [self._message_line(one) for one in together]
        return Outgoing(
            id=message,
            queue=first.queue,
            kind=self.methods[first.pk].kind,
            address=address,
            secret=secret,
            message=compose(str(message), entries, settings.PUBLIC_URL),
            deliveries=tuple((one.pk, one.attempts + 1) for one in together),
            holder=holder,
        )

    def _address(self, one: NotificationDelivery) -> tuple[str, str]:
        """As it is now: a method that was changed is used as it was changed."""
        if one.source == "direct":
            return one.notification.address_ref, ""
        if one.source == "account":
            known = self._reachable(one.notification)
            return ("" if known is None else known.email), ""
        row = self._row(one)
        if row is None:
            return "", ""
        return row.address, push_private_key() if row.kind == "push" else row.secret

    def _message_line(self, one: NotificationDelivery) -> MessageLine:
        line = self.incidents[one.notification.incident].line
        url = f"{settings.PUBLIC_URL}/incidents/{line['number']}"
        over = one.notification.about == OVER
        link = link_of(one.notification)
        return MessageLine(**line, reason=one.notification.why, url=url, over=over, answer_url=link)


def target_of(one: NotificationDelivery) -> Target:
    call = one.notification
    return (call.person or call.address_ref, one.label)


@dataclass(frozen=True, slots=True)
class _Known:
    """Of an incident, whose row is wide: columns of the decision and of the message."""

    incident: NotifiedIncident
    line: Mapping[str, Any]


_DECIDES = tuple(field.name for field in fields(NotifiedIncident))
_TELLS = tuple(
    field.name
    for field in fields(MessageLine)
    if field.name not in ("id", "reason", "url", "over", "answer_url")
)


def _known_incidents(ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, _Known]:
    """Those that there are."""
    names = ("id", *dict.fromkeys((*_DECIDES, *_TELLS)))
    rows = IncidentRow.objects.filter(pk__in=set(ids)).values(*names)
    return {
        row["id"]: _Known(
            NotifiedIncident(**{name: row[name] for name in _DECIDES}),
            {"id": str(row["id"]), **{name: row[name] for name in _TELLS}},
        )
        for row in rows
    }


def _recipients_of(calls: Iterable[Notification]) -> set[tuple[str | None, str, uuid.UUID]]:
    """People notified of incidents before, by whatever method."""
    about = {call.incident for call in calls}
    sent = NotificationDelivery.objects.filter(notification__incident__in=about, state="sent")
    return set(
        sent.values_list("notification__person", "notification__address_ref", "notification__incident")
    )


def _lines(
    due: Sequence[NotificationDelivery], methods: Mapping[int, Method], now: datetime
) -> dict[Target, Line]:
    """Recent messages to each target. A message that is under way counts as sent now."""
    targets = {target_of(one): methods[one.pk] for one in due}
    if not targets:
        return {}
    longest = max(method.span for method in targets.values())
    names, labels = {name for name, _ in targets}, {label for _, label in targets}
    recent = NotificationDelivery.objects.filter(label__in=labels, message__isnull=False).filter(
        Q(notification__person__in=names) | Q(notification__address_ref__in=names, notification__person=None)
    )
    about = recent.filter(Q(state="sent", ended_at__gt=now - longest) | Q(lease_until__gt=now))
    named = about.values_list("notification__person", "notification__address_ref", "label", "message")
    times: dict[Target, list[datetime]] = {}
    for person, ref, label, _, ended in named.annotate(Max("ended_at")).order_by():
        times.setdefault((person or ref, label), []).append(now if ended is None else ended)
    return {
        target: Line(
            tuple(sorted(at for at in times[target] if at > now - method.span)),
            max(times[target]),
        )
        for target, method in targets.items()
        if target in times
    }


# Calls of other packages
# ----------------------------------------------------------------------------------------------------------
Direct = Literal["webhook", "apprise"]


@dataclass(frozen=True, slots=True)
class Call:
    """Have `person` (a login name) told of the incident with the id `incident`, by the rules that they made.

    `key` names this call: with one that was used before nothing happens. `why` is a sentence for the person who is
    called. `urgent` breaks through quiet hours. `when` is the time that delays are counted from. It ends as sent,
    stopped (somebody answered the incident, or `team` has it no more) or given up, each with its events on
    the incident.

    Without a person an address is notified at once: `address_ref` is the name of a shared channel, or the address
    itself, of this `kind`. There is no quiet hour for an address.
    """

    incident: str
    key: str
    why: str
    urgent: bool
    context: Context
    when: datetime
    person: str | None = None
    kind: Kind | None = None
    address_ref: str = ""
    team: str = ""


def notify_all(calls: Sequence[Call]) -> None:
    """Have these people and addresses told, with one statement."""
    rows = [
        {
            "id": uuid.uuid4(),
            "key": call.key,
            "person": call.person,
            "kind": call.kind or "",
            "address_ref": call.address_ref,
            "incident": call.incident,
            "team": call.team,
            "why": call.why,
            "urgent": call.urgent,
            "cause": call.context.cause,
            "trace": call.context.trace,
            "made_at": call.when,
            "state": "new",
            "outcome": "",
            "ended_why": "",
        }
        for call in calls
    ]
    insert_new(Notification, rows)


def notify(
    person: str, incident: str, key: str, why: str, urgent: bool, context: Context, when: datetime
) -> None:
    """Have one person told, as `Call` says."""
    notify_all([Call(incident, key, why, urgent, context, when, person=person)])


def notify_address(
    kind: Direct, address_ref: str, incident: str, key: str, why: str, context: Context, when: datetime
) -> None:
    """Have one address told, as `Call` says."""
    notify_all([Call(incident, key, why, True, context, when, kind=kind, address_ref=address_ref)])
