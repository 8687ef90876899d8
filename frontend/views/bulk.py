"""One action on several tickets: each for itself, and said which went, which did not and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from django.contrib import messages
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect, JsonResponse, QueryDict
from django.urls import reverse
from django.views.decorators.http import require_POST

from frontend.views.actions import VERBS, safe_next
from frontend.views.pages import context_of, page
from incidents import queries
from incidents.commands import Invalid, Refused
from incidents.domain.bulk import BACK, Step, way_back
from incidents.domain.bulk import VERBS as ALLOWED
from ingest.queries import Context

MOST_AT_ONCE = 1000
"""Tickets that one action of a person reaches; the page sends them in batches and shows how far it is."""
MOST_IN_ONE = 100
"""Tickets of one request."""
JSON = "application/json"
OWN = "own"


@dataclass(frozen=True, slots=True)
class Done:
    number: int
    undo: Step | None


@dataclass(frozen=True, slots=True)
class NotDone:
    number: int
    reason: str


@dataclass(slots=True)
class Outcome:
    done: list[Done] = field(default_factory=list)
    refused: list[NotDone] = field(default_factory=list)


@page
@require_POST
def several(request: HttpRequest) -> HttpResponse:
    """Carry out one verb on each of the tickets `number`. The fields of the form are named `verb-field`.

    With `Accept: application/json` the answer lists `done` (with what undoes each) and `refused` (with why); otherwise
    it is said on the page. A form that fits no ticket is a 400 and nothing is done.
    """
    wants_json = JSON in request.headers.get("Accept", "")
    verb = request.POST.get("verb", "")
    try:
        numbers = _numbers(request.POST)
        outcome = _carry_out(verb, numbers, _form(verb, request.POST, numbers), context_of(request))
    except Invalid as error:
        if wants_json:
            return JsonResponse({"field": error.field, "reason": error.reason}, status=400)
        messages.error(request, f"Not done: {error.field} {error.reason}.")
        return HttpResponseRedirect(safe_next(request, reverse("inbox")))
    if wants_json:
        return JsonResponse(asdict(outcome))
    _say(request, VERBS[verb][1], outcome)
    return HttpResponseRedirect(safe_next(request, reverse("inbox")))


def _numbers(form: QueryDict) -> list[int]:
    given = [
        text for text in form.getlist("number") if text.isascii() and text.isdecimal() and len(text) < 16
    ]
    numbers = list(dict.fromkeys(int(text) for text in given))
    if not numbers:
        raise Invalid("number", "says no ticket; select some first")
    if len(numbers) > MOST_IN_ONE:
        raise Invalid("number", f"must be at most {MOST_IN_ONE} at once")
    return numbers


def _form(verb: str, given: QueryDict, numbers: Sequence[int]) -> dict[str, str]:
    """The fields of the verb's own panel. Raises Invalid where there is no such verb for several."""
    if verb not in ALLOWED and verb not in BACK:
        raise Invalid("verb", f"must be one of {', '.join(ALLOWED)}")
    form = {
        name.removeprefix(f"{verb}-"): given.get(name, "") for name in given if name.startswith(f"{verb}-")
    }
    if verb == "merge" and not form.get("into", "").strip():
        form["into"] = str(min(numbers))
    return form


def _carry_out(verb: str, numbers: Sequence[int], form: dict[str, str], context: Context) -> Outcome:
    command = VERBS[verb][0]
    into = form.get("into", "").strip().removeprefix("#") if verb == "merge" else ""
    outcome = Outcome()
    for number in numbers:
        if into == str(number):
            continue  # the one that takes the others in
        try:
            before = queries.get(str(number)).incident
            command(before.id, _with_own_cause(verb, form, before), context)
            outcome.done.append(Done(number, way_back(verb, before)))
        except Refused as error:
            outcome.refused.append(NotDone(number, error.reason))
        except queries.NoSuchIncident as error:
            outcome.refused.append(NotDone(number, str(error)))
        except Invalid as error:
            if error.field != OWN and not outcome.done and not outcome.refused:
                raise
            outcome.refused.append(NotDone(number, error.reason))
    return outcome


def _with_own_cause(verb: str, form: dict[str, str], ticket: queries.Incident) -> dict[str, str]:
    """For each ticket its own component as the cause, where that was chosen."""
    if verb != "resolve" or form.get("cause") != OWN:
        return form
    if ticket.component is None:
        raise Invalid(OWN, "it names no component; say what was at fault")
    return {**form, "cause": ticket.component}


def _say(request: HttpRequest, done: str, outcome: Outcome) -> None:
    if count := len(outcome.done):
        messages.success(request, f"{done} {count} ticket{'' if count == 1 else 's'}")
    if outcome.refused:
        first: Any = outcome.refused[0]
        more = " …" if len(outcome.refused) > 1 else ""
        messages.error(request, f"Not done for {len(outcome.refused)}: #{first.number}: {first.reason}{more}")
