"""What can be asked about alerts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from django.db import connection

from ingest.alerts.rows import CurrentAlert, current_alerts, current_alerts_in_parts, reported, stream_of
from ingest.integrations.normalized import Severity
from ingest.log.read import read_newest
from ingest.log.types import Event, Position


def alerts(ids: Sequence[str]) -> list[CurrentAlert]:
    """These alerts as they stand, the one that changed last first."""
    return current_alerts("id = ANY(%s::uuid[])", (list(ids),), "changed_at DESC, id")


def alerts_at(ids: Sequence[str], as_of: Position) -> list[CurrentAlert]:
    """These alerts as the log had them at a position, those of them that it knew then.

    How often they were repeated is not in the log: `last_seen` is the time of the last change, `repeats` 0.
    """
    return [reported(event) for event in read_newest([stream_of(id_) for id_ in ids], as_of)]


def open_alerts() -> Iterator[CurrentAlert]:
    """All alerts that fire or are acknowledged, read in parts: there may be 100,000 of them."""
    return current_alerts_in_parts("status <> 'resolved'", (), "changed_at, id")


def firing_alerts(ids: Sequence[str]) -> list[Event]:
    """The newest event of each of these alerts that still fires, in the order of the log."""
    firing = current_alerts("id = ANY(%s::uuid[]) AND status <> 'resolved'", (list(ids),))
    return read_newest([stream_of(one.id) for one in firing])


@dataclass(frozen=True, slots=True)
class Brief:
    """What an incident needs to know of an alert to judge where it belongs."""

    component: str | None
    title: str
    severity: Severity


def briefs(ids: Sequence[str]) -> dict[str, Brief]:
    """By id, with one statement: a storm has 30,000 of them and their labels are not needed."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id::text, component, title, severity FROM alert WHERE id = ANY(%s::uuid[])",
            (list(ids),),
        )
        return {
            id_: Brief(component, title, severity) for id_, component, title, severity in cursor.fetchall()
        }


def components_of(ids: Sequence[str]) -> set[str]:
    """Of these alerts, however many: the database tells apart what a storm of 30,000 is on, in half the time."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT DISTINCT component FROM alert WHERE id = ANY(%s::uuid[]) AND component IS NOT NULL",
            (list(ids),),
        )
        return {component for (component,) in cursor.fetchall()}


def firing_on(components: Sequence[str]) -> dict[str, int]:
    """By component how many alerts fire on it or are acknowledged; those without any are left out."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT component, count(*) FROM alert WHERE status <> 'resolved' AND component = ANY(%s)"
            " GROUP BY component",
            (list(components),),
        )
        return {name: int(count) for name, count in cursor.fetchall()}


def labels_carried(ids: Sequence[str], least: int) -> list[tuple[str, str, int]]:
    """Labels with the value that at least so many of these alerts carry, and how many do; the commonest first."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT label.key, label.value, count(*) FROM alert, jsonb_each_text(labels::jsonb) AS label"
            " WHERE id = ANY(%s::uuid[]) GROUP BY 1, 2 HAVING count(*) >= %s ORDER BY 3 DESC, 1, 2",
            (list(ids), least),
        )
        return [(str(name), str(value), int(count)) for name, value, count in cursor.fetchall()]
