"""Configuration changes with their actors, the newest first."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db.models import QuerySet

from incidents.audit.models import Change

NEWEST = (("position", True),)
"""The order of the audit log."""


@dataclass(frozen=True, slots=True)
class Difference:
    """One field of a thing, as it was and as it is; None where there was, or is, none."""

    field: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Query of the audit; empty and None restrict nothing. `text` is part of a thing's name, in any case."""

    kind: str = ""
    actor: str = ""
    text: str = ""
    since: datetime | None = None
    until: datetime | None = None


def changes(query: AuditQuery) -> QuerySet[Change]:
    rows = Change.objects.all()
    if query.kind:
        rows = rows.filter(kind=query.kind)
    if query.actor:
        rows = rows.filter(actor=query.actor)
    if query.text:
        rows = rows.filter(key__icontains=query.text)
    if query.since is not None:
        rows = rows.filter(at__gte=query.since)
    if query.until is not None:
        rows = rows.filter(at__lt=query.until)
    return rows


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


def _text(body: Mapping[str, Any], field: str) -> str | None:
    value = body.get(field)
    if value is None or value in ("", [], {}):
        return None
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, sort_keys=True)
