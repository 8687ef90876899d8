"""Who changed what configures Dossier, and what it was before: for staff."""

from __future__ import annotations

import re
from urllib.parse import urlencode

from django.http import HttpRequest, HttpResponse
from django.views.decorators.http import require_safe

from frontend.views.pages import page, show, staff_only
from incidents.audit.queries import changes, differences, kinds

_POSITION = re.compile(r"[0-9a-f]{36}")


@page
@require_safe
def audit(request: HttpRequest) -> HttpResponse:
    staff_only(request)
    kind, who = (request.GET.get(name, "").strip().replace("\0", "")[:300] for name in ("kind", "who"))
    asked = {name: request.GET.get(name, "") for name in ("before", "after")}
    before, after = (told if _POSITION.fullmatch(told) else "" for told in asked.values())
    found = changes(kind, _actor(who), before, after)
    same = {name: value for name, value in (("kind", kind), ("who", who)) if value}
    context = {
        "changes": [{"it": row, "fields": differences(row.before, row.after)} for row in found.changes],
        "older": found.older and urlencode({**same, "before": found.older}),
        "newer": found.newer and urlencode({**same, "after": found.newer}),
        "kinds": kinds(),
        "kind": kind,
        "who": who,
    }
    return show(request, "frontend/audit.html", context, section="settings")


def _actor(who: str) -> str:
    """A bare name is meant as a person's."""
    return who if not who or ":" in who else f"user:{who}"
