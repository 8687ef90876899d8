"""Audit of the configuration: actor, change, value before. For staff."""

from __future__ import annotations

from datetime import datetime

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.time_input import parse_day
from frontend.views.pages import page, show, staff_only
from frontend.views.paging import page_of_rows
from frontend.views.restore import PAGES
from incidents.audit.queries import NEWEST, AuditQuery, changes, differences, kinds
from incidents.domain.values import InvalidValueError

FILTERS = ("q", "kind", "actor", "since", "until")


@page
@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    staff_only(request, "Only staff can see the audit log.")
    typed = {name: request.GET.get(name, "").strip().replace("\0", "")[:300] for name in FILTERS}
    rows, pager = page_of_rows(request, changes(_audit_query(typed)), NEWEST)
    context = {
        "changes": [
            {
                "it": row,
                "fields": differences(row.before, row.after),
                "restorable": row.after is None and row.kind in PAGES,
            }
            for row in rows
        ],
        "list": pager,
        "kinds": kinds(),
        "typed": typed,
        "filtered": any(typed.values()),
    }
    return show(request, "frontend/settings/audit.html", context, section="settings")


def _audit_query(typed: dict[str, str]) -> AuditQuery:
    """Query of the address. Raises InvalidValueError, which names the parameter. Raises InvalidValueError, which names
    the parameter."""
    since, until = _day("since", typed["since"]), _day("until", typed["until"])
    return AuditQuery(
        typed["kind"],
        _actor(typed["actor"]),
        typed["q"],
        since and since[0],
        until and until[1],
    )


def _day(name: str, text: str) -> tuple[datetime, datetime] | None:
    """Begin and end of a day by the reader's clock."""
    if not text:
        return None
    try:
        day = parse_day(text)
    except ValueError:
        raise InvalidValueError(name, "must be a date such as 2026-11-21") from None
    if not 2000 <= day[0].year < 2100:
        raise InvalidValueError(name, "must be a date of this century")
    return day


def _actor(actor: str) -> str:
    """A bare name is meant as a person's."""
    return actor if not actor or ":" in actor else f"user:{actor}"
