"""The maintenance window of a drained node: what draining causes opens no incident and pages nobody."""

from __future__ import annotations

import uuid
from datetime import datetime, timedelta
from typing import Any, Final

from incidents.domain.remediation.state import Remediation
from incidents.domain.suppression.rules import MOST_PATTERNS
from incidents.domain.values import rfc3339
from incidents.remediation.queries import names_of_node
from incidents.suppression.models import MaintenanceWindow
from ingest.commands import record_configuration
from ingest.queries import Context

KIND: Final = "maintenance"
LONGEST: Final = timedelta(days=30)
"""A drained node that nobody returns pages again after so long."""


def slug_of(number: int) -> str:
    return f"drained-{number}"


def begin(number: int, found: Remediation, region: str | None, at: datetime, context: Context) -> None:
    """Opens the window, or opens it again. The caller keeps alerts out (`keep_reactor_out`)."""
    row = MaintenanceWindow.objects.filter(slug=slug_of(number)).first()
    before = None if row is None else window_as_json(row)
    row = row or MaintenanceWindow(slug=slug_of(number))
    row.edition = uuid.uuid4()
    row.reason = f"{found.node} is drained for #{number}"
    row.components = _patterns(found, region, at)
    row.starts_at, row.ends_at = at, at + LONGEST
    row.save()
    record_configuration(KIND, row.slug, before, window_as_json(row), context)


def end(number: int, at: datetime, context: Context) -> None:
    """Ends the window, if there is one that is in force."""
    row = MaintenanceWindow.objects.filter(slug=slug_of(number), ends_at__gt=at).first()
    if row is None:
        return
    before = window_as_json(row)
    row.edition, row.ends_at = uuid.uuid4(), max(at, row.starts_at + timedelta(microseconds=1))
    row.save()
    record_configuration(KIND, row.slug, before, window_as_json(row), context)


def _patterns(found: Remediation, region: str | None, at: datetime) -> list[str]:
    """Exact names, and patterns that fit no other node: names of nodes hold neither `:` nor `[`."""
    node = found.node
    by_name = [f"slot/{node}:*", f"gpu/{node}-[0-9]", f"gpu/{node}-[0-9][0-9]", found.component]
    known = [name for name in names_of_node(node, region, at) if not set(name) & set("*?[")]
    return list(dict.fromkeys([*by_name, *([found.part] if found.part else []), *known]))[:MOST_PATTERNS]


def window_as_json(row: MaintenanceWindow) -> dict[str, Any]:
    """A window as the log keeps it: the fields of the API that people configure."""
    return {
        "slug": row.slug,
        "reason": row.reason,
        "components": list(row.components),
        "services": list(row.services),
        "matchers": list(row.matchers),
        "starts_at": rfc3339(row.starts_at),
        "ends_at": rfc3339(row.ends_at),
        "rule": row.rule,
        "time_zone": row.time_zone,
        "mode": row.mode,
    }
