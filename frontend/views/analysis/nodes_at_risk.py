"""Nodes at risk: the newest forecast of node failures of a region."""

from __future__ import annotations

from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from analyzers.queries import NodeAtRisk, node_forecast
from frontend.views.pages import page, show
from frontend.views.paging import listed
from incidents.components.summary import open_about
from incidents.domain.values import InvalidValueError
from ingest.queries import regions


@page
@require_safe
def nodes_at_risk(request: HttpRequest) -> HttpResponse:
    known = regions()
    region = request.GET.get("region") or (known[0] if known else "")
    if region and region not in known:
        raise InvalidValueError("region", f"no telemetry of {region[:100]}")
    found = node_forecast(region) if region else None
    nodes = found.nodes if found else ()
    rows = listed(request, nodes, _words, lambda one: (one.component,), carried=("region",))
    about = open_about({one.component for one in rows.rows})
    context = {
        "forecast": found,
        "old": found is not None and found.is_over(timezone.now()),
        "rows": [(one, about.get(one.component)) for one in rows.rows],
        "list": rows,
        "regions": known,
        "region": region,
    }
    return show(request, "frontend/analysis/nodes_at_risk.html", context, section="analyzers")


def _words(one: NodeAtRisk) -> str:
    return " ".join((one.component, one.reasons, one.kind or ""))
