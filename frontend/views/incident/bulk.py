"""One action on several incidents out of the forms of the inbox; what is done with them stands in `incidents.bulk`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.urls import reverse
from django.utils import timezone
from django.views.decorators.http import require_POST

from frontend.time_input import parse_span
from frontend.views.incident.actions import VERBS, cause_of, incident_of, safe_next, until_of
from frontend.views.pages import context_of, page
from incidents.bulk import BulkResult, act_on
from incidents.commands import InvalidValueError
from incidents.domain.incident.bulk import VERBS as ALLOWED
from incidents.domain.incident.bulk import Step

MOST_IN_ONE = 100
"""Incidents of one request: the page sends its batches and shows how far it is."""
JSON = "application/json"
Form = Mapping[str, str]


def _text(name: str) -> Callable[[Form], dict[str, Any]]:
    return lambda form: {name: form.get(name, "")}


def _silence_until(form: Form) -> datetime:
    try:
        return timezone.now() + parse_span(form.get("other", "").strip() or form.get("span", ""))
    except ValueError as error:
        raise InvalidValueError("span", str(error)) from None


READ: Mapping[str, Callable[[Form], dict[str, Any]]] = {
    "acknowledge": lambda _: {},
    "unacknowledge": lambda _: {},
    "assign": lambda form: {"owner": form.get("owner", "").strip() or None},
    "hand_over": lambda form: {"team": form.get("team", ""), "reason": form.get("reason", "")},
    "snooze": lambda form: {"until": until_of(form), "reason": form.get("reason", "")},
    "set_severity": _text("severity"),
    "resolve": lambda form: {"confirmed_cause": cause_of(form), "note": form.get("note", "")},
    "reopen": _text("reason"),
    "escalate": _text("reason"),
    "merge": lambda form: {"into": incident_of(form), "reason": form.get("reason", "")},
    "undo": lambda form: {"what": form.get("what") or None},
    "silence": lambda form: {"until": _silence_until(form), "comment": form.get("comment", "")},
    "end_silence": _text("silence"),
}
"""Of each verb's form the fields of its command."""


@page
@require_POST
def bulk_action(request: HttpRequest) -> HttpResponse:
    """Carry out one verb on each of the incidents `number`. The fields of the form are named `verb-field`.

    With `Accept: application/json` the answer lists `done` (with what undoes each) and `refused` (with why); otherwise
    it is said on the page. A form that fits no incident is a 400 and nothing is done.
    """
    wants_json = JSON in request.headers.get("Accept", "")
    verb = request.POST.get("verb", "")
    try:
        numbers = _numbers(request.POST)
        if verb not in READ:
            raise InvalidValueError("verb", f"must be one of {', '.join(ALLOWED)}")
        fields = READ[verb](_form(verb, request.POST, numbers))
        outcome = act_on(map(str, numbers), verb, fields, context_of(request))
    except InvalidValueError as error:
        if wants_json:
            return JsonResponse({"field": error.field, "reason": error.reason}, status=400)
        messages.error(request, f"Not done: {error.field} {error.reason}.")
        return HttpResponseRedirect(safe_next(request, reverse("inbox")))
    if wants_json:
        return JsonResponse(_result_as_json(outcome))
    done = {"silence": "Silenced", "end_silence": "Silence ended for"}.get(verb) or VERBS[verb][1]
    _report_result(request, done, outcome)
    return HttpResponseRedirect(safe_next(request, reverse("inbox")))


def _result_as_json(outcome: BulkResult) -> dict[str, Any]:
    return {
        "done": [{"number": one.number, "undo": one.undo and _as_form(one.undo)} for one in outcome.done],
        "refused": [{"number": int(one.reference), "reason": one.reason} for one in outcome.refused],
    }


def _as_form(step: Step) -> dict[str, Any]:
    return {"verb": step.verb, "fields": {name: value or "" for name, value in step.fields.items()}}


def _numbers(form: QueryDict) -> list[int]:
    given = [
        text for text in form.getlist("number") if text.isascii() and text.isdecimal() and len(text) < 16
    ]
    numbers = list(dict.fromkeys(int(text) for text in given))
    if not numbers:
        raise InvalidValueError("number", "is empty; select incidents first")
    if len(numbers) > MOST_IN_ONE:
        raise InvalidValueError("number", f"must list at most {MOST_IN_ONE}")
    return numbers


def _form(verb: str, given: QueryDict, numbers: Sequence[int]) -> dict[str, str]:
    """The fields of the verb's own panel."""
    form = {
        name.removeprefix(f"{verb}-"): str(given.get(name, ""))
        for name in given
        if name.startswith(f"{verb}-")
    }
    if verb == "merge" and not form.get("into", "").strip():
        form["into"] = str(min(numbers))
    return form


def _report_result(request: HttpRequest, done: str, outcome: BulkResult) -> None:
    if count := len(outcome.done):
        messages.success(request, f"{done} {count} incident{'' if count == 1 else 's'}")
    if outcome.refused:
        first = outcome.refused[0]
        more = " …" if len(outcome.refused) > 1 else ""
        messages.error(
            request, f"Not done for {len(outcome.refused)}: #{first.reference}: {first.reason}{more}"
        )
