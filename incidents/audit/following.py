"""The log's changes of configuration, kept where they can be searched. The follower's place moves with the rows."""

from __future__ import annotations

from incidents.audit.models import Change
from ingest.commands import Follower
from ingest.queries import Event


def keep(events: list[Event]) -> None:
    Change.objects.bulk_create(
        [
            Change(
                position=str(event.position),
                kind=event.body["kind"],
                key=event.body["key"],
                actor=event.actor,
                at=event.recorded_at,
                before=event.body["before"],
                after=event.body["after"],
            )
            for event in events
        ],
        ignore_conflicts=True,
    )


FOLLOWER = Follower("audit", frozenset({"configuration.changed"}), keep)
