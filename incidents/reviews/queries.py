"""Actions of reviews out of the log, as they were at one place in it."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from incidents.domain.review import Action, actions_from
from incidents.reviews.commands import KIND
from incidents.reviews.models import Review
from ingest.queries import Position, newest_configured


def due_actions(day: date, upto: Position) -> list[tuple[int, Action]]:
    """Actions that were due by a day and not done, with the number of the incident; the earliest date first."""
    found = [(number, one) for number, one in _actions(upto) if one.due and not one.done_at]
    due = [(number, one) for number, one in found if one.due <= day.isoformat()]
    return sorted(due, key=lambda pair: (pair[1].due, pair[0], pair[1].id))


def _actions(upto: Position) -> Iterator[tuple[int, Action]]:
    numbers = [str(number) for number in Review.objects.values_list("number", flat=True)]
    for event in newest_configured(KIND, numbers, upto):
        after = event.body["after"]
        for one in actions_from(after["actions"]):
            yield after["incident"], one
