"""Silences as people and their programs make and end them, and what they hold back."""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, Literal

from django.db import transaction
from django.db.models import Count
from django.utils import timezone

from incidents import queries
from incidents.domain.incident.alerts import matched_labels
from incidents.domain.routing.rules import write_matchers
from incidents.domain.suppression.recurrence import Recurrence, Span, times_from
from incidents.domain.suppression.rules import Matcher, each_matcher, matchers_from
from incidents.domain.values import (
    UNREADABLE,
    CommandRefusedError,
    InvalidValueError,
    check_line,
    check_text,
    rfc3339,
)
from incidents.incident.repository import keep_reactor_out
from incidents.people.permissions import allow, allow_silence
from incidents.suppression import suppressor as suppression
from incidents.suppression.models import SilenceRecurrence
from incidents.teams.models import Silence
from ingest.commands import record_configuration
from ingest.queries import Alert, Context, alerts, open_alerts

LONGEST = timedelta(days=366)
"""For how long a silence may recur: each of its times is looked for. One that does not recur may last for any time."""
MOST_ANNOTATIONS = 50


@dataclass(frozen=True, slots=True)
class SilenceRepeat:
    """Recurrence of a silence, and its end; None: for as long as a silence may last."""

    recurrence: Recurrence
    until: datetime | None = None


@dataclass(frozen=True, slots=True)
class SilenceRequest:
    """A silence as somebody wants it to be, from a start that may be past; of one that recurs the first time."""

    matchers: list[dict[str, Any]]
    starts_at: datetime
    ends_at: datetime
    created_by: str
    comment: str
    again: SilenceRepeat | None = None
    annotations: dict[str, str] | None = None
    """None: as they are."""


State = Literal["unreadable", "active", "pending", "expired"]
"""An unreadable one holds nothing, though its time is not over."""


def create_silence(
    matchers: object,
    starts_at: datetime | None,
    ends_at: datetime,
    created_by: str,
    comment: object,
    context: Context,
    again: SilenceRepeat | None = None,
    incidents: Sequence[str] = (),
) -> Silence:
    """Alerts that every matcher fits call nobody from `starts_at` (None: now) until `ends_at`, and `again`.

    Incidents all of whose firing alerts it covers notify nobody meanwhile: those of these ids from now on, others
    within seconds. Raises InvalidValueError, ForbiddenError.
    """
    allow("silence", context)
    now = timezone.now()
    held = matchers_from(matchers)
    start = max(starts_at or now, now)
    if ends_at <= start:
        raise InvalidValueError("ends_at", "must be later than the start and than now")
    row = Silence(
        matchers=[matcher.as_json() for matcher in held],
        starts_at=start,
        ends_at=ends_at,
        created_by=check_line("created_by", created_by, 255),
        comment=check_text("comment", comment, 2_000, blank=False),
    )
    recurrence = None if again is None else _recurring(row, again)
    allow_silence(context, held, row.ends_at - start)
    with transaction.atomic():
        row.save(force_insert=True)
        if recurrence is not None:
            recurrence.save(force_insert=True)
        note_change(row, None, context)
        if incidents:
            suppression.suppress(incidents, timezone.now())
    return row


def _recurring(row: Silence, again: SilenceRepeat) -> SilenceRecurrence:
    """Makes the silence last as long as it is to recur."""
    times = times_from(row.starts_at, row.ends_at, again.recurrence)
    until = again.until or row.starts_at + LONGEST
    if not row.ends_at <= until <= row.starts_at + LONGEST:
        raise InvalidValueError(
            "recurrence.until", f"must be after the first end and at most {LONGEST.days} days after the start"
        )
    rule = again.recurrence
    made = SilenceRecurrence(silence=row, rule=rule.rule, time_zone=rule.time_zone)
    made.starts_at, made.ends_at, row.ends_at = times.starts_at, times.ends_at, until
    return made


@transaction.atomic
def place_silence(id: uuid.UUID, wanted: SilenceRequest, context: Context) -> None:
    """Make the silence of this id as it is wanted. What is to be over is ended, and not made. Raises
    InvalidValueError."""
    allow("silence", context)
    # Nothing is decided by a silence while it changes.
    keep_reactor_out()
    now = timezone.now()
    row = Silence.objects.select_for_update().filter(pk=id).first()
    before = None if row is None else configured(row)
    made = Silence(
        pk=id,
        matchers=[matcher.as_json() for matcher in matchers_from(wanted.matchers)],
        starts_at=wanted.starts_at,
        ends_at=wanted.ends_at,
        created_by=check_line("created_by", wanted.created_by, 255),
        comment=check_text("comment", wanted.comment, 2_000, blank=False),
        annotations=_annotations_wanted(wanted, row),
    )
    if wanted.ends_at <= wanted.starts_at:
        raise InvalidValueError("ends_at", "must be later than the start")
    again = None if wanted.again is None else _placed_again(made, wanted.again)
    if again is not None and made.ends_at - max(made.starts_at, now) > LONGEST:
        raise InvalidValueError("recurrence.until", f"must be at most {LONGEST.days} days after the start")
    if made.ends_at > now:
        allow_silence(context, matchers_from(wanted.matchers), made.ends_at - max(made.starts_at, now))
    if made.ends_at <= now:
        if row is not None:
            end_silence(row, context)
    elif before != (after := _silence_as_json(made, again)):
        made.save(force_insert=row is None, force_update=row is not None)
        SilenceRecurrence.objects.filter(silence=made).delete()
        if again is not None:
            again.save(force_insert=True)
        if row is not None and row.matchers != made.matchers:
            # What the older matchers held is held by nothing that there is, so it is looked at again.
            suppression.firing_suppressed().filter(silence=id).update(silence=uuid.uuid4())
        if row is not None:
            suppression.resume(id, context)
        record_configuration("silence", str(id), before, after, context)


def _annotations_wanted(wanted: SilenceRequest, row: Silence | None) -> dict[str, str]:
    if wanted.annotations is None:
        return {} if row is None else dict(row.annotations)
    return check_annotations(wanted.annotations)


def check_annotations(value: object) -> dict[str, str]:
    """Annotations of a silence: up to MOST_ANNOTATIONS texts by name. Raises InvalidValueError."""
    if not isinstance(value, dict) or not all(isinstance(text, str) for text in value.values()):
        raise InvalidValueError("annotations", "must be an object of texts")
    if len(value) > MOST_ANNOTATIONS:
        raise InvalidValueError("annotations", f"must be at most {MOST_ANNOTATIONS}, not {len(value)}")
    return {
        check_text("annotations", name, 255): check_text("annotations", text, 2_000)
        for name, text in value.items()
    }


def _placed_again(made: Silence, again: SilenceRepeat) -> SilenceRecurrence:
    """Recurrence; makes the silence last as long."""
    rule, until = again.recurrence, again.until or made.starts_at + LONGEST
    times = times_from(made.starts_at, made.ends_at, rule)
    if until < made.ends_at:
        raise InvalidValueError("recurrence.until", "must not be before the first end")
    made.ends_at = until
    return SilenceRecurrence(
        silence=made,
        rule=rule.rule,
        time_zone=rule.time_zone,
        starts_at=times.starts_at,
        ends_at=times.ends_at,
    )


def configured(row: Silence) -> dict[str, Any]:
    """Configuration in plain values."""
    return _silence_as_json(row, getattr(row, "recurrence", None))


def _silence_as_json(row: Silence, again: SilenceRecurrence | None) -> dict[str, Any]:
    return {
        "matchers": [str(matcher) for matcher in matchers_shown(row)],
        "starts_at": rfc3339(row.starts_at),
        "ends_at": rfc3339(row.ends_at),
        "created_by": row.created_by,
        "comment": row.comment,
        "recurrence": None if again is None else recurrence_as_json(row, again),
        **({"annotations": dict(row.annotations)} if row.annotations else {}),
    }


def matchers_shown(row: Silence) -> Sequence[Matcher]:
    """Its matchers; in place of those that cannot be read one with what is kept."""
    try:
        return each_matcher(row.matchers)
    except UNREADABLE:
        return (Matcher("unreadable", json.dumps(row.matchers)),)


def problem_of(row: Silence, now: datetime) -> str | None:
    """Reason why it cannot be read as it stands, so that it holds nothing; None where it can, and once it is over."""
    if row.ends_at <= now:
        return None
    try:
        _span(row, now)
    except UNREADABLE as error:
        return str(error)
    return None


def recurrence_as_json(row: Silence, again: SilenceRecurrence) -> dict[str, Any]:
    """The rule, its zone, when it ends; and the first of its times, from which the rule counts."""
    return {
        "rule": again.rule,
        "time_zone": again.time_zone,
        "until": rfc3339(row.ends_at),
        "starts_at": rfc3339(again.starts_at),
        "ends_at": rfc3339(again.ends_at),
    }


def note_change(row: Silence, before: dict[str, Any] | None, context: Context) -> None:
    """Record what a silence has become, in the transaction that makes it so."""
    record_configuration("silence", str(row.pk), before, configured(row), context)


def find_silence(id: str) -> Silence | None:
    try:
        return Silence.objects.filter(pk=uuid.UUID(id)).first()
    except ValueError:
        return None


@transaction.atomic
def end_silence(row: Silence, context: Context) -> bool:
    """End it now; says whether it was not over yet. Incidents that it covered notify again, and alerts that it held
    get their incident within a minute."""
    allow("silence", context)
    now = timezone.now()
    if row.ends_at <= now:
        return False
    before = configured(row)
    row.ends_at, row.starts_at = now, min(row.starts_at, now)
    row.save(update_fields=["starts_at", "ends_at", "updated_at"])
    note_change(row, before, context)
    suppression.resume(row.pk, context)
    return True


def state_of(row: Silence, now: datetime) -> State:
    if row.ends_at <= now:
        return "expired"
    try:
        span = _span(row, now)
    except UNREADABLE:
        return "unreadable"
    if span is None:
        return "expired"
    return "active" if span.starts_at <= now else "pending"


def span_of(row: Silence, now: datetime) -> Span | None:
    """From when until when it holds now, else next; None where it is over, or cannot be read."""
    try:
        return _span(row, now)
    except UNREADABLE:
        return None


def _span(row: Silence, now: datetime) -> Span | None:
    """The same. Raises UNREADABLE."""
    rule = row.rule
    if rule.times is None:
        return Span(row.starts_at, row.ends_at) if row.ends_at > now else None
    found = rule.span(now) or rule.times.after(max(now, row.starts_at - timedelta(microseconds=1)))
    return found if found is not None and found.starts_at < row.ends_at else None


def by_state(rows: Iterable[Silence]) -> dict[State, list[Silence]]:
    """First what cannot be read, then active ones, then those to come, then those that are over."""
    found: dict[State, list[Silence]] = {"unreadable": [], "active": [], "pending": [], "expired": []}
    now = timezone.now()
    for row in rows:
        found[state_of(row, now)].append(row)
    return found


@dataclass(frozen=True, slots=True)
class SuppressedAlertInfo:
    """A firing alert that calls nobody, why, and since when."""

    alert: Alert
    why: str
    at: datetime


def suppressed_alerts(limit: int = 100) -> tuple[list[SuppressedAlertInfo], int]:
    """The latest alerts that call nobody, and how many there are in all."""
    rows = list(suppression.firing_suppressed().order_by("-at", "alert")[:limit])
    known = {one.id: one for one in alerts([str(row.alert) for row in rows])}
    shown = [
        SuppressedAlertInfo(known[str(row.alert)], row.why, row.at) for row in rows if str(row.alert) in known
    ]
    return shown, suppression.firing_suppressed().count()


def suppressed_counts() -> Mapping[str, int]:
    """Number of firing alerts that each silence suppresses, by its id."""
    counted = suppression.firing_suppressed().values_list("silence").annotate(n=Count("pk")).order_by()
    held = {str(silence): count for silence, count in counted}
    members = suppression.covered_by(
        Silence.objects.filter(ends_at__gt=timezone.now()).values_list("pk", flat=True)
    )
    return {id_: held.get(id_, 0) + members.get(id_, 0) for id_ in {*held, *members}}


def matchers_in_common(reference: str) -> str:
    """Matchers of `labels_in_common`, as text; empty where there are none. Raises IncidentNotFoundError."""
    return write_matchers(Matcher(name, value) for name, value in labels_in_common(reference).items())


def labels_in_common(reference: str, most: int = 500) -> dict[str, str]:
    """The labels that all firing alerts of an incident have in common, of its first `most`; where they have none, their
    component, or the dedup key of a single one, with their integration. Raises IncidentNotFoundError."""
    firing = _firing(reference, most)
    if shared := _in_common([dict(one.alert.labels) for one in firing]):
        return shared
    labels = [matched_labels({}, one.alert.component, one.integration, one.alert.key) for one in firing]
    shared = _in_common(labels)
    if "component" in shared:
        shared.pop("dedup_key", None)
    # An integration alone is everything that it sends.
    return shared if {"component", "dedup_key"} & shared.keys() else {}


def _firing(reference: str, most: int = 500) -> list[Alert]:
    found, _ = queries.members(reference, most)
    return [one for one in found if one.status != "resolved"]


# Of an incident, and before it is made
# ----------------------------------------------------------------------------------------------------------
def silence_incident(reference: str, ends_at: datetime, comment: object, context: Context) -> Silence:
    """Silence what all firing alerts of an incident have in common, from now on. Raises InvalidValueError,
    CommandRefusedError where there is nothing in common, ForbiddenError."""
    view = queries.get(reference)
    labels = labels_in_common(reference)
    if not labels:
        raise CommandRefusedError(f"{nothing_in_common(reference)}; snooze it instead")
    matchers = [Matcher(name, value).as_json() for name, value in labels.items()]
    silenced_by = context.actor.partition(":")[2] or context.actor
    return create_silence(
        matchers, None, ends_at, silenced_by, comment, context, incidents=(view.incident.id,)
    )


def nothing_in_common(reference: str) -> str:
    """Reason why `labels_in_common` is empty. Raises IncidentNotFoundError."""
    if _firing(reference):
        return "the firing alerts have no label, component or dedup key in common"
    return "the incident has no firing alert"


MOST_LISTED: Final = 10


@dataclass(frozen=True, slots=True)
class SilencePreview:
    """Effect of matchers at once: the number of firing alerts, `titles` of the first, the incidents they are of."""

    matchers: tuple[Matcher, ...]
    alerts: int
    titles: tuple[str, ...]
    incidents: tuple[int, ...]


def preview(matchers: object) -> SilencePreview:
    """Raises InvalidValueError for matchers that no silence can have."""
    wanted = matchers_from(matchers)
    found = [
        (one.id, one.alert.title)
        for one in open_alerts()
        if all(
            matcher.matches(
                matched_labels(dict(one.alert.labels), one.alert.component, one.integration, one.alert.key)
            )
            for matcher in wanted
        )
    ]
    numbers = sorted(set(queries.incident_numbers([id_ for id_, _ in found]).values()))
    titles = dict.fromkeys(title for _, title in found)
    return SilencePreview(wanted, len(found), tuple(titles)[:MOST_LISTED], tuple(numbers))


def _in_common(labels: Sequence[Mapping[str, str]]) -> dict[str, str]:
    if not labels:
        return {}
    return {name: text for name, text in labels[0].items() if all(o.get(name) == text for o in labels[1:])}
