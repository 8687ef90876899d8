"""Updates of status pages: drafted from an incident, previewed, and published by a person."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from django.contrib import messages
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_http_methods, require_POST, require_safe

from frontend.views.pages import context_of, page, show, user_name
from incidents import queries
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.domain.incident.state import Incident
from incidents.domain.permissions import ForbiddenError
from incidents.domain.status_pages import (
    ENDS,
    STATES,
    STATUSES,
    Notice,
    Publish,
    StatusUpdate,
    publish,
)
from incidents.status_pages import commands
from incidents.status_pages.models import StatusNotice, StatusPage
from incidents.status_pages.projection import notice_of
from incidents.status_pages.queries import (
    UnknownStatusPageError,
    draft_of,
    leaks,
    notice_called,
    notices_of_incident,
    page_called,
)
from incidents.teams.models import allow_at
from ingest.queries import Context

MOST: Final = 100
FORM: Final = "frontend/status_pages/update.html"


@dataclass(frozen=True, slots=True)
class _About:
    """Subject of an update: a page, and its notice or incident."""

    page: StatusPage
    notice: Notice | None
    incident: Incident | None

    @property
    def kinds(self) -> Mapping[str, Mapping[str, str]]:
        return STATUSES if self.notice is None else {self.notice.kind: STATUSES[self.notice.kind]}


@page
@require_safe
def status_updates(request: HttpRequest) -> HttpResponse:
    """Notices of all pages, the newest first."""
    pages = {row.slug: row for row in StatusPage.objects.all()}
    rows = [notice_of(row) for row in StatusNotice.objects.filter(page__in=pages)[:MOST]]
    listed = [(pages[one.page], one) for one in rows]
    context = {
        "pages": list(pages.values()),
        "current": [(on, one) for on, one in listed if one.ended_at is None and not one.withdrawn],
        "past": [(on, one) for on, one in listed if one.ended_at is not None or one.withdrawn],
    }
    return show(request, "frontend/status_pages/updates.html", context, section="settings")


@page
@require_http_methods(["GET", "HEAD", "POST"])
def status_update_new(request: HttpRequest) -> HttpResponse:
    """The form of a new notice; POST with `step` preview shows it as readers will, with publish it is published."""
    given = request.POST if request.method == "POST" else request.GET
    it = _incident(given.get("incident", ""))
    pages = list(StatusPage.objects.select_related("team"))
    slug = given.get("page", "") or (pages[0].slug if len(pages) == 1 else "")
    if not slug:
        context = {"pages": pages, "incident": it}
        return show(request, "frontend/status_pages/choose.html", context, section="settings")
    about = _About(_page(slug), None, it)
    if request.method == "POST":
        return _posted(request, about)
    typed = _blank(about)
    if it is not None:
        found = draft_of(about.page, it)
        typed |= {
            "title": found.title,
            "status": found.status,
            "text": found.text,
            "services": dict(found.services),
        }
    return _form(request, about, typed)


@page
@require_http_methods(["GET", "HEAD", "POST"])
def status_notice(request: HttpRequest, id: str) -> HttpResponse:
    """A notice with its updates, and the form of the next one."""
    about = _about(id)
    if request.method == "POST":
        return _posted(request, about)
    return _form(request, about, _blank(about))


@page
@require_POST
def status_notice_act(request: HttpRequest, id: str, verb: str) -> HttpResponse:
    about = _about(id)
    assert about.notice is not None
    slug, by = about.page.slug, context_of(request)
    try:
        match verb:
            case "withdraw":
                commands.withdraw_notice(slug, about.notice.id, by)
                done = "Withdrawn: removed from the page."
            case "edit":
                number = request.POST.get("number", "")
                text = _lines(request.POST.get("text", ""))
                commands.edit_update(
                    slug,
                    about.notice.id,
                    int(number) if number.isdecimal() and len(number) < 5 else 0,
                    text,
                    by,
                )
                done = "Text changed. The page shows it within seconds."
            case _:
                raise Http404("no such action")
    except (CommandRefusedError, InvalidValueError) as error:
        return _refused(request, about, _blank(about), error)
    messages.success(request, done)
    return HttpResponseRedirect(reverse("status_notice", args=[about.notice.id]))


# The form
# ----------------------------------------------------------------------------------------------------------
def _posted(request: HttpRequest, about: _About) -> HttpResponse:
    form = request.POST
    services = {
        one.key: state
        for one in about.page.entries
        if (state := form.get(f"state-{one.key}", "")) and state != "operational"
    }
    typed = {
        "kind": form.get("kind", "incident"),
        "title": form.get("title", "").strip(),
        "status": form.get("status", ""),
        "text": _lines(form.get("text", "")),
        "services": {} if form.get("status") in ENDS else services,
    }
    if about.notice is None:
        typed["kind"] = next((kind for kind, of in STATUSES.items() if typed["status"] in of), "incident")
    incident_id = None if about.incident is None else about.incident.id
    command = Publish(
        typed["status"], typed["text"], typed["services"], typed["kind"], typed["title"], incident_id
    )
    by = context_of(request)
    try:
        _allow(about.page, by)
        if form.get("step") != "publish":
            return _form(request, about, typed, preview=_preview(about, command))
        slug = about.page.slug
        if about.notice is None:
            notice = commands.open_notice(slug, command, by)
        else:
            notice = commands.update_notice(slug, about.notice.id, command, by)
    except (CommandRefusedError, InvalidValueError) as error:
        return _refused(request, about, typed, error)
    messages.success(request, f"Published on {about.page.name}: {notice.status_words.lower()}.")
    return HttpResponseRedirect(reverse("status_notice", args=[notice.id]))


def _preview(about: _About, command: Publish) -> Notice:
    """The notice as it would be. Raises as publishing does."""
    keys = {one.key for one in about.page.entries}
    body = publish(about.notice, "preview", about.page.slug, keys, command)
    before = () if about.notice is None else about.notice.updates
    new = StatusUpdate(len(before) + 1, timezone.now(), body["status"], body["text"], body["services"])
    return Notice("preview", about.page.slug, body["kind"], body["title"], None, (*before, new))


def _refused(
    request: HttpRequest, about: _About, typed: dict[str, Any], error: CommandRefusedError | InvalidValueError
) -> HttpResponse:
    status = (
        400 if isinstance(error, InvalidValueError) else 403 if isinstance(error, ForbiddenError) else 409
    )
    plain = f"{error.field} {error.reason}" if isinstance(error, InvalidValueError) else error.reason
    return _form(request, about, typed, problem=f"{plain[:1].upper()}{plain[1:]}.", status=status)


def _form(
    request: HttpRequest,
    about: _About,
    typed: dict[str, Any],
    *,
    preview: Notice | None = None,
    problem: str = "",
    status: int = 200,
) -> HttpResponse:
    it, notice = about.incident, about.notice
    names = {one.key: one.name for one in about.page.entries}
    context = {
        "on": about.page,
        "notice": notice,
        "incident": it,
        "already": [] if it is None or notice is not None else notices_of_incident(it.id),
        "typed": typed,
        "kinds": about.kinds,
        "entries": [(one, typed["services"].get(one.key, "operational")) for one in about.page.entries],
        "states": STATES,
        "statuses": STATUSES,
        "status": {"names": names},
        "preview": preview,
        "leaks": [] if preview is None else leaks(f"{preview.title}\n{preview.last.text}", it),
        "problem": problem,
        "refused": _refusal(about.page, request),
    }
    return show(request, FORM, context, section="settings", status=status)


def _blank(about: _About) -> dict[str, Any]:
    """A form without text; of a further update the states are those of the last one."""
    notice = about.notice
    if notice is None:
        return {"kind": "incident", "title": "", "status": "investigating", "text": "", "services": {}}
    return {
        "kind": notice.kind,
        "title": notice.title,
        "status": notice.last.status,
        "text": "",
        "services": dict(notice.last.services),
    }


def _lines(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\0", "")


def _allow(on: StatusPage, context: Context) -> None:
    allow_at(commands.MAY, None if on.team is None else on.team.slug, context)


def _refusal(on: StatusPage, request: HttpRequest) -> str:
    """Reason why the reader may not publish here; empty where they may."""
    try:
        _allow(on, Context(f"user:{user_name(request)}"))
    except ForbiddenError as error:
        return error.reason
    return ""


def _about(id_: str) -> _About:
    try:
        notice = notice_called(str(id_))
        return _About(
            page_called(notice.page),
            notice,
            None if notice.incident is None else queries.get(notice.incident).incident,
        )
    except UnknownStatusPageError as unknown:
        raise Http404(str(unknown)) from None


def _page(slug: str) -> StatusPage:
    try:
        return page_called(slug)
    except UnknownStatusPageError as unknown:
        raise Http404(str(unknown)) from None


def _incident(reference: str) -> Incident | None:
    if not reference:
        return None
    return queries.get(reference.replace("\0", "")[:60]).incident
