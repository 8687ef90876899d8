"""The post-incident review of an incident: drafted, edited, published, and its actions; and all reviews."""

from __future__ import annotations

from typing import Any

from django.contrib import messages
from django.contrib.auth import get_user_model
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils import timezone
from django.views.decorators.http import require_POST, require_safe

from frontend.views.pages import context_of, page, show, user_name
from incidents import queries
from incidents.api.reviews import pdf_response
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.domain.permissions import ForbiddenError
from incidents.domain.review import exported
from incidents.people.permissions import refusals
from incidents.reviews import commands
from incidents.reviews.models import Review

MOST = 200
DONE = {
    "draft": "Review drafted from the timeline",
    "write": "Review saved",
    "publish": "Review published",
    "withdraw": "Review is a draft again",
    "add": "Action added",
    "done": "Action done",
    "reopen": "Action open again",
    "remove": "Action removed",
}


@page
@require_safe
def review(request: HttpRequest, number: int) -> HttpResponse:
    return _render(request, number)


@page
@require_POST
def review_act(request: HttpRequest, number: int, verb: str) -> HttpResponse:
    """One form each; what was typed stays where it is refused."""
    if verb not in DONE:
        raise Http404("no such action")
    try:
        _do(verb, str(number), request)
    except commands.UnknownReviewError as unknown:
        raise Http404(str(unknown)) from None
    except (CommandRefusedError, InvalidValueError) as error:
        plain = error.reason if isinstance(error, CommandRefusedError) else f"{error.field}: {error.reason}"
        status = (
            403
            if isinstance(error, ForbiddenError)
            else 409
            if isinstance(error, CommandRefusedError)
            else 400
        )
        return _render(request, number, {"verb": verb, "reason": f"{plain[:1].upper()}{plain[1:]}."}, status)
    messages.success(request, DONE[verb])
    return redirect("review", number)


def _do(verb: str, number: str, request: HttpRequest) -> None:
    form, context = request.POST, context_of(request)
    match verb:
        case "draft":
            commands.begin(number, context)
        case "write":
            edition = str(form.get("edition", ""))
            text = str(form.get("text", "")).replace("\r\n", "\n")
            commands.write(number, text, int(edition) if edition.isdecimal() else None, context)
        case "publish" | "withdraw":
            commands.publish(number, verb == "publish", context)
        case "add":
            commands.add_action(
                number, {name: form.get(name, "") for name in ("text", "owner", "due")}, context
            )
        case "remove":
            commands.remove_action(number, _id(form), context)
        case _:
            commands.change_action(number, _id(form), {"done": verb == "done"}, context)


def _id(form: Any) -> int:
    text = str(form.get("action", ""))
    return int(text) if text.isdecimal() and len(text) < 10 else 0


def _render(
    request: HttpRequest, number: int, problem: dict[str, str] | None = None, status: int = 200
) -> HttpResponse:
    it = queries.get(str(number)).incident
    row = Review.objects.filter(pk=it.number).first()
    today = timezone.localdate()
    context = {
        "i": it,
        "review": row,
        "actions": [] if row is None else [(one, one.late(today)) for one in commands.actions_of(row)],
        "refused": refusals(user_name(request), {commands.MAY}, it.id).get(commands.MAY),
        "problem": problem or {},
        "typed": {name: str(value) for name, value in request.POST.items()} if problem else {},
        "people": get_user_model().objects.filter(is_active=True).values_list("username", flat=True)[:MOST],
    }
    return show(request, "frontend/incident/review.html", context, section="inbox", status=status)


@page
@require_safe
def review_markdown(_: HttpRequest, number: int) -> HttpResponse:
    row = _found(number)
    headers = {
        "Content-Disposition": f'attachment; filename="review-{number}.md"',
        "X-Content-Type-Options": "nosniff",
    }
    text = exported(row.text, commands.actions_of(row))
    return HttpResponse(text, content_type="text/markdown; charset=utf-8", headers=headers)


@page
@require_safe
def review_pdf(request: HttpRequest, number: int) -> HttpResponse:
    try:
        return pdf_response(_found(number))
    except CommandRefusedError as error:
        reason = f"{error.reason[:1].upper()}{error.reason[1:]}."
        return _render(request, number, {"verb": "pdf", "reason": reason}, 409)


def _found(number: int) -> Review:
    try:
        return commands.find(str(number))
    except commands.UnknownReviewError as unknown:
        raise Http404(str(unknown)) from None


@page
@require_safe
def reviews(request: HttpRequest) -> HttpResponse:
    """The latest reviews, and all actions that are not done."""
    today, rows = timezone.localdate(), list(Review.objects.all()[:MOST])
    listed = [
        (row.number, one, one.late(today))
        for row in Review.objects.iterator()
        for one in commands.actions_of(row)
        if not one.done_at
    ]
    listed.sort(key=lambda one: (one[1].due or "9999", one[0]))
    shown = [
        (
            row,
            row.text.partition("\n")[0].removeprefix("# "),
            sum(not one["done_at"] for one in row.actions),
        )
        for row in rows
    ]
    context = {"reviews": shown, "actions": listed[:MOST], "more": max(0, len(listed) - MOST), "most": MOST}
    return show(request, "frontend/reports/reviews.html", context, section="reports")
