"""Who changed what, the newest first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from incidents.audit.models import Change

PAGE = 50


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of a thing, as it was and as it is; None where there was, or is, none."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Page:
    """`older` and `newer` lead to the pages beside it, or are None."""

    changes: list[Change]
    older: str | None
    newer: str | None


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """What is looked for; empty and None ask nothing. `text` is part of a thing's name, in any case."""

    kind: str = ""
    who: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None


def changes(asked: AuditQuery, before: str = "", after: str = "", limit: int = PAGE) -> Page:
    """A page of changes, the newest first: older than the position `before`, or the nearest newer than `after`."""
    rows = Change.objects.all()
    if asked.kind:
        rows = rows.filter(kind=asked.kind)
    if asked.who:
        rows = rows.filter(actor=asked.who)
    if asked.text:
        rows = rows.filter(key__icontains=asked.text)
    if asked.since is not None:
        rows = rows.filter(at__gte=asked.since)
    if asked.until is not None:
        rows = rows.filter(at__lt=asked.until)
    if after:
        found = list(rows.filter(position__gt=after).order_by("position")[: limit + 1])
        more, found = len(found) > limit, found[:limit][::-1]
        return Page(found, found[-1].position if found else None, found[0].position if more else None)
    if before:
        rows = rows.filter(position__lt=before)
    found = list(rows[: limit + 1])
    more, found = len(found) > limit, found[:limit]
    return Page(found, found[-1].position if more else None, found[0].position if before and found else None)


def kinds() -> list[str]:
    return list(Change.objects.order_by("kind").values_list("kind", flat=True).distinct())


def differences(before: Mapping[str, Any] | None, after: Mapping[str, Any] | None) -> list[Difference]:
    """The fields that differ, by name; of a new or a removed thing those that say anything."""
    old, new = before or {}, after or {}
    found = []
    for field in sorted({*old, *new}):
        if old.get(field) != new.get(field):
            found.append(Difference(field, _text(old, field), _text(new, field)))
    return found


def _text(told: Mapping[str, Any], field: str) -> str | None:
    value = told.get(field)
    if value is None or value in ("", [], {}):
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
