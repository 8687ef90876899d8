"""Status pages as outsiders see them: HTML, JSON and an Atom feed, without session, and without database on a hit."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Final

from django.conf import settings
from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.template.loader import render_to_string
from django.urls import reverse
from django.utils.cache import get_conditional_response
from django.utils.feedgenerator import Atom1Feed
from django.utils.html import linebreaks
from django.views.decorators.http import require_safe

from frontend.views.status_pages.bodies import BODIES, Body, Render
from incidents.domain.status_pages import STATES, STATUSES, Notice
from incidents.status_pages.queries import PageStatus, as_json, page_called, status_of_page

PUBLIC: Final = "public, max-age=5, stale-while-revalidate=10, stale-if-error=86400"
"""Of a public page: proxies may keep it for 5 seconds, and for a day while we do not answer."""
INTERNAL: Final = "private, no-cache"
ENTRIES: Final = 50
"""Updates in a feed."""


@require_safe
def status_page(request: HttpRequest, slug: str) -> HttpResponseBase:
    return _answer(request, slug, "html")


@require_safe
def status_json(request: HttpRequest, slug: str) -> HttpResponseBase:
    return _answer(request, slug, "json")


@require_safe
def status_feed(request: HttpRequest, slug: str) -> HttpResponseBase:
    return _answer(request, slug, "atom")


def _answer(request: HttpRequest, slug: str, form: str) -> HttpResponseBase:
    known = BODIES.page(slug)
    if known is None:
        raise Http404("no such status page")
    if not known.public and not request.user.is_authenticated:
        if form != "html":
            raise Http404("no such status page")
        return redirect_to_login(request.get_full_path())
    body = BODIES.body(slug, known, form, RENDER[form])
    response = HttpResponse(body.content, content_type=body.content_type)
    response["ETag"] = body.etag
    response["Cache-Control"] = PUBLIC if known.public else INTERNAL
    response["X-Content-Type-Options"] = "nosniff"
    if known.public and form == "json":
        response["Access-Control-Allow-Origin"] = "*"
    if not known.public:
        response["X-Robots-Tag"] = "noindex"
    answer = get_conditional_response(request, etag=body.etag, response=response)
    assert answer is not None
    return answer


def _status(slug: str, now: datetime) -> PageStatus:
    return status_of_page(page_called(slug), now)


def _html(slug: str, now: datetime) -> Body:
    status = _status(slug, now)
    text = render_to_string(
        "frontend/status_pages/public.html",
        {
            "status": status,
            "days": status_days(status),
            "states": STATES,
            "statuses": STATUSES,
            "mail": settings.EMAIL_IS_SET_UP,
        },
    )
    return Body.of(text, "text/html; charset=utf-8")


def status_days(status: PageStatus) -> list[tuple[str, list[Notice]]]:
    """Ended notices by the day (UTC) on which they began."""
    days: dict[str, list[Notice]] = {}
    for notice in status.past:
        days.setdefault(f"{notice.began_at.astimezone(UTC):%-d %B %Y}", []).append(notice)
    return list(days.items())


def _json(slug: str, now: datetime) -> Body:
    found = as_json(_status(slug, now), _url(slug))
    return Body.of(json.dumps(found, ensure_ascii=False), "application/json")


def _feed(slug: str, now: datetime) -> Body:
    status, url = _status(slug, now), _url(slug)
    feed = Atom1Feed(
        title=status.title,
        link=url,
        description=status.description,
        feed_url=settings.PUBLIC_URL + reverse("status_feed", args=[slug]),
        feed_guid=url,
    )
    updates = [
        (one.at, one, notice)
        for notice in (*status.current, *status.scheduled, *status.past)
        for one in notice.updates
    ]
    for _, one, notice in sorted(updates, key=lambda entry: entry[0], reverse=True)[:ENTRIES]:
        feed.add_item(
            title=f"{notice.title}: {STATUSES[notice.kind][one.status]}",
            link=f"{url}#notice-{notice.id}",
            description=_summary(one.text, one.services, status.names),
            unique_id=f"{url}#update-{notice.id}-{one.number}",
            pubdate=one.at,
            updateddate=one.edited_at or one.at,
        )
    # Without entries the feed would carry the moment of each rendering, and another ETag with it.
    text = feed.writeString("utf-8") if updates else _without_time(feed, now)
    return Body.of(text, "application/atom+xml; charset=utf-8")


def _without_time(feed: Atom1Feed, now: datetime) -> str:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    feed.latest_post_date = lambda: midnight - timedelta(days=1)  # type: ignore[method-assign]
    return feed.writeString("utf-8")


def _summary(text: str, services: Mapping[str, str], names: Mapping[str, str]) -> str:
    """HTML, as Atom readers take it."""
    lines = [f"{names[key]}: {STATES[state].lower()}" for key, state in services.items() if key in names]
    return linebreaks("\n\n".join([text, *(["\n".join(lines)] if lines else [])]), autoescape=True)


def _url(slug: str) -> str:
    return settings.PUBLIC_URL + reverse("status_page", args=[slug])


RENDER: Final[Mapping[str, Render]] = {"html": _html, "json": _json, "atom": _feed}
