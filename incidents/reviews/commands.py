"""Draft, write and publish reviews, and keep their actions. Each function is one transaction.

Raises as `incidents.commands` does, and UnknownReviewError.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from django.contrib.auth import get_user_model
from django.db import transaction

from incidents import queries
from incidents.alerts.correlate import DEFAULT_REGION
from incidents.components.impact import blast_of
from incidents.domain.incident.decide import CommandRefusedError
from incidents.domain.incident.state import Incident
from incidents.domain.review import Action, Line, actions_from, changed, draft, text_from, with_action
from incidents.domain.values import InvalidValueError, optional_rfc3339
from incidents.people.permissions import allow
from incidents.reviews.models import Review
from ingest.commands import record_configuration
from ingest.queries import Context, now_utc

KIND = "review"
MAY = "comment"
"""Permission to write a review: that to comment on its incident."""


class UnknownReviewError(LookupError):
    """There is no review of this incident, or no such action in it; the message says which."""


def begin(reference: str, context: Context) -> Review:
    """The review of an incident, drafted from the log where there is none yet."""
    it = queries.get(reference).incident
    allow(MAY, context, it.id)
    if (found := Review.objects.filter(pk=it.number).first()) is not None:
        return found
    text = drafted(it)
    with transaction.atomic():
        now = now_utc()
        row, new = Review.objects.get_or_create(
            pk=it.number,
            defaults={"text": text, "created_at": now, "updated_at": now, "updated_by": context.actor},
        )
        if new:
            record_configuration(KIND, str(it.number), None, as_json(row), context)
    return row


def drafted(it: Incident) -> str:
    """The draft as the log has it now."""
    lines = [
        Line(one.at, one.last_at, one.count, one.type, one.actor, one.text)
        for one in queries.timeline(str(it.number))
    ]
    return draft(it, lines, _impact(it))


def _impact(it: Incident) -> Sequence[str]:
    if it.component is None:
        return ()
    graph = blast_of(it.component, it.region or DEFAULT_REGION, it.resolved_at or now_utc())
    beneath = f"{graph.count} components depend on {it.component}" if graph.count else ""
    return [one for one in (beneath, *(f"service {service.name}" for service in graph.services)) if one]


def write(reference: str, text: object, edition: object, context: Context) -> Review:
    """Another text. `edition` is the one it was made from; CommandRefusedError where somebody else wrote since."""
    body = text_from(text)

    def to(row: Review) -> None:
        if edition != row.edition:
            raise CommandRefusedError(
                f"this review was changed in the meantime (edition {row.edition}, yours {edition}); read it again"
            )
        row.text = body

    return _change(reference, to, context)


def publish(reference: str, published: object, context: Context) -> Review:
    if not isinstance(published, bool):
        raise InvalidValueError("published", "must be true or false")

    def to(row: Review) -> None:
        if published != (row.published_at is not None):
            row.published_at = now_utc() if published else None

    return _change(reference, to, context)


def add_action(reference: str, given: Mapping[str, Any], context: Context) -> Review:
    _check_owner(given)

    def to(row: Review) -> None:
        actions = with_action(actions_of(row), given.get("text"), given.get("owner"), given.get("due"))
        row.actions = [one.as_json() for one in actions]

    return _change(reference, to, context)


def change_action(reference: str, id_: int, given: Mapping[str, Any], context: Context) -> Review:
    _check_owner(given)

    def to(row: Review) -> None:
        try:
            actions = changed(actions_of(row), id_, context.actor, now_utc(), given)
        except KeyError:
            raise UnknownReviewError(f"the review of #{row.number} has no action {id_}") from None
        row.actions = [one.as_json() for one in actions]

    return _change(reference, to, context)


def remove_action(reference: str, id_: int, context: Context) -> Review:
    def to(row: Review) -> None:
        remaining = [one for one in row.actions if one["id"] != id_]
        if len(remaining) == len(row.actions):
            raise UnknownReviewError(f"the review of #{row.number} has no action {id_}")
        row.actions = remaining

    return _change(reference, to, context)


@transaction.atomic
def _change(reference: str, to: Callable[[Review], None], context: Context) -> Review:
    it = queries.get(reference).incident
    allow(MAY, context, it.id)
    row = Review.objects.select_for_update().filter(pk=it.number).first()
    if row is None:
        raise UnknownReviewError(f"#{it.number} has no review yet; draft it first")
    before = as_json(row)
    to(row)
    if as_json(row) == before:
        return row
    row.edition, row.updated_at, row.updated_by = row.edition + 1, now_utc(), context.actor
    row.save()
    record_configuration(KIND, str(it.number), before, as_json(row), context)
    return row


def _check_owner(given: Mapping[str, Any]) -> None:
    owner = given.get("owner")
    if owner and not get_user_model().objects.filter(username=str(owner)[:200], is_active=True).exists():
        raise InvalidValueError("owner", f"no active user {str(owner)[:100]!r}")


def find(reference: str) -> Review:
    """Raises UnknownReviewError, IncidentNotFoundError."""
    number = queries.get(reference).incident.number
    row = Review.objects.filter(pk=number).first()
    if row is None:
        raise UnknownReviewError(f"#{number} has no review yet; draft it first")
    return row


def actions_of(row: Review) -> list[Action]:
    return actions_from(row.actions)


def as_json(row: Review) -> dict[str, Any]:
    return {
        "incident": row.number,
        "text": row.text,
        "actions": row.actions,
        "published_at": optional_rfc3339(row.published_at),
    }
