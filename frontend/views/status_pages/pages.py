"""Settings of status pages: address, audience, services with public names."""

from __future__ import annotations

from typing import Any, Final

from django.conf import settings
from django.contrib import messages
from django.db import IntegrityError
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST

from frontend.rights import configurers_only, own_teams, rights
from frontend.views.pages import context_of, page, show
from frontend.views.restore import removed
from incidents.api.incident.views import ConflictError
from incidents.api.status_pages import StatusPageSerializer, StatusPagesView
from incidents.domain.permissions import ForbiddenError
from incidents.domain.status_pages import overall_words, states_of, worst
from incidents.status_pages.models import StatusPage, StatusSubscriber
from incidents.status_pages.queries import notices_of
from incidents.teams.models import Service
from ingest.queries import StreamVersionError

FORBIDDEN: Final = "Only staff, and managers for their own team, can change status pages."
BLANK_ROWS: Final = 3
COLUMNS: Final = ("key", "name", "group", "covers")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def status_pages(request: HttpRequest) -> HttpResponse:
    """The list and the form; a POST creates a page, or changes the one that `edited` names."""
    if request.method == "POST":
        configurers_only(request, FORBIDDEN)
        return _posted(request)
    if edited := request.GET.get("edit"):
        row = _found(edited)
        return _shown(request, row.slug, _typed_from(row), {})
    return _shown(request, "", {"services": []}, {})


def _posted(request: HttpRequest) -> HttpResponse:
    edited, typed = request.POST.get("edited", ""), _typed_in(request.POST)
    row = _found(edited) if edited else None
    given = {
        **typed,
        "slug": row.slug if row is not None else typed["slug"],
        "team": typed["team"] or None,
        "services": [
            {**one, "covers": [text.strip() for text in one["covers"].split(",") if text.strip()]}
            for one in typed["services"]
        ],
    }
    serializer = StatusPageSerializer(row, data=given)
    if not serializer.is_valid():
        errors = {name: " ".join(map(str, why)) for name, why in serializer.errors.items()}
        return _shown(request, edited, typed, errors)
    try:
        StatusPagesView.acting_for(context_of(request)).put(serializer)
    except ForbiddenError as refused:
        return _shown(request, edited, typed, {"team": refused.reason})
    except (IntegrityError, StreamVersionError, ConflictError):
        changed = {"slug": "changed by someone else in the meantime; reload and try again"}
        return _shown(request, edited, typed, changed)
    messages.success(request, f"{typed['name']} saved.")
    return HttpResponseRedirect(reverse("status_pages"))


def _typed_from(row: StatusPage) -> dict[str, Any]:
    return {
        "slug": row.slug,
        "name": row.name,
        "description": row.description,
        "public": row.public,
        "team": "" if row.team is None else row.team.slug,
        "services": [{**one.as_json(), "covers": ", ".join(one.covers)} for one in row.entries],
    }


def _typed_in(post: QueryDict) -> dict[str, Any]:
    """Rows of services without any text are left out; those that keep nothing but a key were emptied to remove them."""
    columns = [[text.strip() for text in post.getlist(f"service_{name}")] for name in COLUMNS]
    rows = [dict(zip(COLUMNS, row, strict=True)) for row in zip(*columns, strict=False)]
    return {
        **{name: post.get(name, "").strip() for name in ("slug", "name", "description", "team")},
        "public": post.get("public") == "true",
        "services": [row for row in rows if row["name"] or row["group"] or row["covers"]],
    }


def _shown(request: HttpRequest, edited: str, typed: dict[str, Any], errors: dict[str, str]) -> HttpResponse:
    allowed, now = rights(request), timezone.now()
    readers = dict(
        StatusSubscriber.objects.filter(confirmed_at__isnull=False)
        .order_by()
        .values_list("page")
        .annotate(Count("pk"))
    )
    listed = []
    for row in StatusPage.objects.select_related("team"):
        notices = notices_of(row, now)
        state = worst(states_of([one.key for one in row.entries], notices).values())
        current = [one for one in notices if one.ended_at is None]
        listed.append((row, state, overall_words(state), current, readers.get(row.slug, 0)))
    context = {
        "pages": listed,
        "mail": settings.EMAIL_IS_SET_UP,
        "rights": allowed,
        "teams": own_teams(allowed),
        "all_services": Service.objects.all(),
        "edited": edited,
        "typed": typed,
        "rows": [*typed["services"], *({} for _ in range(BLANK_ROWS))],
        "errors": errors,
    }
    status = 400 if errors else 200
    return show(request, "frontend/status_pages/pages.html", context, section="settings", status=status)


@page
@require_POST
def status_page_act(request: HttpRequest, slug: str, verb: str) -> HttpResponse:
    configurers_only(request, FORBIDDEN)
    row = _found(slug)
    if verb != "remove":
        raise Http404("no such verb")
    try:
        StatusPagesView.acting_for(context_of(request)).perform_destroy(row)
        removed(request, "status_page", slug, f"{row.name} removed.")
    except (ConflictError, StreamVersionError):
        messages.error(request, "Not removed: changed by someone else in the meantime. Reload and try again.")
    return HttpResponseRedirect(reverse("status_pages"))


def _found(slug: str) -> StatusPage:
    row = StatusPage.objects.select_related("team").filter(slug=slug.replace("\0", "")[:100]).first()
    if row is None:
        raise Http404("no such status page")
    return row
