"""Alertmanager's API v2 beside `POST /api/v2/alerts`: what amtool, Karma and Grafana read, and silences.

Shapes and status codes follow `api/v2/openapi.yaml` of github.com/prometheus/alertmanager. Errors are JSON texts, as
there.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from django.conf import settings
from django.core.exceptions import ValidationError
from django.db import InterfaceError, OperationalError, transaction
from django.http import HttpRequest, HttpResponse
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from incidents import queries
from incidents.api.alerts.alertmanager_shapes import (
    Cluster,
    Configuration,
    ListedSilence,
    MadeSilence,
    ServerStatus,
    SilenceMatcher,
    SilenceStatus,
)
from incidents.api.alerts.firing import AlertFilter, fits_receiver, grouped, listed, receiver_of
from incidents.domain.routing.rules import ANYTHING, Rule, read_matchers
from incidents.domain.suppression.recurrence import Span
from incidents.domain.suppression.rules import Matcher, each_matcher, matchers_from
from incidents.domain.values import InvalidValueError, check_text
from incidents.suppression.silences import (
    check_annotations,
    configured,
    end_silence,
    matchers_shown,
    note_change,
    problem_of,
    span_of,
    state_of,
)
from incidents.teams.models import Silence, routing_table, silences_in_force
from ingest.api.alerts import RETRY_AFTER, alertmanager_api, key_of
from ingest.api.answers import in_json
from ingest.api.keys import Key
from ingest.api.problem_details import down
from ingest.integrations.json_body import read_object
from ingest.integrations.normalized import InvalidPayloadError, instant
from ingest.queries import Context

VERSION = "0.34.0"
"""The version whose API this is: amtool refuses to talk to another major one."""
TRUE = frozenset({"", "1", "yes", "true", "on", "checked", "selected", "t", "y", "enabled"})
FALSE = frozenset({"0", "no", "false", "off", "unchecked", "unselected", "f", "n", "disabled"})
FLAGS = ("active", "silenced", "inhibited", "unprocessed", "muted")
"""Of lists of alerts. Nothing here is unprocessed or muted."""
STATES = ("active", "expired", "pending")
"""Of silences: each is a flag of their list, too."""
NEEDED = ("alerts", "incidents:read", "incidents:write")
"""Scopes of a key with which all of amtool works."""


class _RequestError(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


View = Callable[..., HttpResponse]


def _answers(scope: str) -> Callable[[View], View]:
    """A view that needs a key with the scope, and answers errors as JSON texts."""

    def wrap(view: View) -> View:
        def answered(request: HttpRequest, *args: str, **kwargs: str) -> HttpResponse:
            try:
                return view(request, _allowed(request, scope), *args, **kwargs)
            except _RequestError as refused:
                answer = _text(refused.status, str(refused))
            except (InvalidValueError, InvalidPayloadError) as error:
                answer = _text(400, str(error))
            except (OperationalError, InterfaceError) as error:
                answer = _text(503, down(error))
                answer["Retry-After"] = RETRY_AFTER
            if answer.status_code == 401:
                answer["WWW-Authenticate"] = 'Bearer realm="dossier", Basic realm="dossier"'
            return answer

        return answered

    return wrap


def _allowed(request: HttpRequest, scope: str) -> str:
    """Name of the calling key, or of the person who is signed in."""
    key = key_of(request)
    if isinstance(key, Key):
        if not key.allows(scope):
            raise _RequestError(
                403,
                f"the key {key.name} lacks the scope {scope}; amtool needs a key with {', '.join(NEEDED)}",
            )
        return key.name
    if request.user.is_authenticated and request.method == "GET":
        return request.user.get_username()
    raise _RequestError(
        401, "a valid integration key is required, as a bearer token or as the password of basic auth"
    )


def _text(status: int, message: str) -> HttpResponse:
    return HttpResponse(json.dumps(message), status=status, content_type="application/json")


# Reads
# ----------------------------------------------------------------------------------------------------------
@csrf_exempt
def alerts(request: HttpRequest) -> HttpResponse:
    """GET /api/v2/alerts lists; POST is the endpoint."""
    return _by_method(request, {"GET": _list_alerts, "POST": alertmanager_api})


def _by_method(request: HttpRequest, views: Mapping[str, View], *args: str, **kwargs: str) -> HttpResponse:
    """Answer of the view of the method; 405, or 200 for OPTIONS, with all methods."""
    view = views.get(request.method or "")
    if view is not None:
        return view(request, *args, **kwargs)
    preflight = request.method == "OPTIONS"
    answer = HttpResponse(status=200) if preflight else _text(405, f"only {' and '.join(views)} here")
    answer["Allow"] = ", ".join((*views, "OPTIONS"))
    return answer


@csrf_exempt
def status(request: HttpRequest) -> HttpResponse:
    return _by_method(request, {"GET": _status})


@_answers("incidents:read")
def _status(request: HttpRequest, _: str) -> HttpResponse:  # noqa: ARG001
    version = dict.fromkeys(("revision", "branch", "buildUser"), "dossier")
    return in_json(
        ServerStatus(
            Cluster("dossier", "disabled", []),
            {"version": VERSION, **version, "buildDate": "", "goVersion": ""},
            Configuration(_configuration([team.slug for team in queries.teams()])),
            _STARTED,
        )
    )


ELSEWHERE = "cannot-say-ask-api-v1-routes-explain"
"""The receiver in a configuration that cannot say where alerts go."""
_STARTED = timezone.now()


def _configuration(teams: Iterable[str]) -> str:
    """YAML that is a configuration of Alertmanager, for `amtool config routes` and Grafana.

    Where rules ask for more than labels, which a route of Alertmanager cannot, its only receiver says so: `amtool
    config routes test` then names no wrong team.
    """
    table = routing_table()
    rules = [_route(rule, "  ") for rule in table.rules]
    if any(rule is None for rule in rules) or table.services:
        return (
            "# Rules of Dossier ask for more than labels, which this form cannot say: ask /api/v1/routes/explain.\n"
            f"route:\n  receiver: {json.dumps(ELSEWHERE)}\nreceivers:\n- name: {json.dumps(ELSEWHERE)}\n"
            + "".join(f"- name: {json.dumps(team)}\n" for team in teams)
        )
    routes = "".join(filter(None, rules))
    return (
        f"route:\n  receiver: {json.dumps(table.default.slug)}\n"
        + (f"  routes:\n{routes}" if routes else "")
        + "receivers:\n"
        + "".join(f"- name: {json.dumps(team)}\n" for team in teams)
    )


def _route(rule: Rule, indent: str) -> str | None:
    """A rule as a route; None for one that asks for more than labels, or that names no team."""
    preflight = replace(rule.when, labels=())
    inner = [_route(child, f"{indent}  ") for child in rule.children]
    if preflight != ANYTHING or rule.team is None or any(one is None for one in inner):
        return None
    matchers = ", ".join(json.dumps(str(matcher)) for matcher in rule.when.labels)
    return f"{indent}- receiver: {json.dumps(rule.team.slug)}\n{indent}  matchers: [{matchers}]\n" + (
        f"{indent}  routes:\n{''.join(filter(None, inner))}" if inner else ""
    )


@csrf_exempt
def receivers(request: HttpRequest) -> HttpResponse:
    return _by_method(request, {"GET": _list_receivers})


@_answers("incidents:read")
def _list_receivers(request: HttpRequest, _: str) -> HttpResponse:
    wanted = _receiver_matchers(request)
    slugs = [team.slug for team in queries.teams()]
    return in_json([receiver_of(slug) for slug in slugs if fits_receiver(wanted, slug)])


@_answers("incidents:read")
def _list_alerts(request: HttpRequest, _: str) -> HttpResponse:
    return _firing(request, listed)


@csrf_exempt
def groups(request: HttpRequest) -> HttpResponse:
    return _by_method(request, {"GET": _list_groups})


@_answers("incidents:read")
def _list_groups(request: HttpRequest, _: str) -> HttpResponse:
    """Incidents with the alerts that are members of them; those without an incident are one group of their receiver."""
    return _firing(request, grouped)


def _firing(request: HttpRequest, write: Callable[..., bytes]) -> HttpResponse:
    for name in FLAGS:
        _flag(request, name)
    wanted = AlertFilter(
        [_filter(text) for text in request.GET.getlist("filter")],
        _pattern("receiver", request.GET.get("receiver", "")),
        _receiver_matchers(request),
        _flag(request, "active"),
        _flag(request, "silenced"),
        _flag(request, "inhibited"),
    )
    listing = write(wanted, silences_in_force(), routing_table(), timezone.now())
    return HttpResponse(listing, content_type="application/json")


def _flag(request: HttpRequest, name: str) -> bool:
    """1 and True are true, nothing is the default; what is neither true nor false is refused."""
    word = request.GET.get(name, "").lower()
    if word not in TRUE and word not in FALSE:
        raise InvalidValueError(name, f"must be true or false, not {word[:40]!r}")
    return word in TRUE


def _pattern(name: str, text: str) -> Callable[[str], bool]:
    """Whether a name matches a regular expression; every name does where there is none."""
    if not text:
        return lambda _: True
    matcher = _matcher(name, {"name": name, "value": text, "isRegex": True})
    return lambda value: matcher.matches({name: value})


def _receiver_matchers(request: HttpRequest) -> list[Matcher]:
    """Matchers on the labels of receivers, of which a team has its name alone."""
    return [_filter(text, "receiver_matchers") for text in request.GET.getlist("receiver_matchers")]


def _matcher(field: str, explained: dict[str, Any]) -> Matcher:
    """Unlike those of a silence one that every alert fits is fine: a filter hides nothing by itself."""
    try:
        (matcher,) = each_matcher([explained])
    except InvalidValueError as error:
        raise InvalidValueError(field, error.reason) from None
    return matcher


def _filter(text: str, field: str = "filter") -> Matcher:
    """A matcher as `amtool` and Grafana write it: `alertname="Down"`, `team=~"a|b"`."""
    try:
        one, *more = read_matchers(text[:2_000])
    except InvalidValueError:
        one, more = {}, []
    if more or not one:
        raise InvalidValueError(field, f'must be a matcher such as alertname="Down", not {text[:80]!r}')
    return _matcher(field, one)


# Silences
# ----------------------------------------------------------------------------------------------------------
@csrf_exempt
def silences(request: HttpRequest) -> HttpResponse:
    return _by_method(request, {"GET": _list_silences, "POST": _post_silence})


@_answers("incidents:read")
def _list_silences(request: HttpRequest, _: str) -> HttpResponse:
    matchers = [_filter(text) for text in request.GET.getlist("filter")]
    rows = Silence.objects.filter(ends_at__gt=timezone.now() - timedelta(days=5))
    rows = rows.select_related("recurrence")
    shown = {state for state in STATES if _flag(request, state)}
    entries = [_silence(row) for row in rows if _fits(row, matchers)]
    return in_json([one for one in entries if one.status.state in shown])


def _fits(row: Silence, matchers: Iterable[Matcher]) -> bool:
    """As Alertmanager: a filter is held against the silence's own matchers, read as labels."""
    labels = {matcher.name: matcher.value for matcher in matchers_shown(row)}
    return all(matcher.matches(labels) for matcher in matchers)


@_answers("incidents:write")
def _post_silence(request: HttpRequest, actor: str) -> HttpResponse:
    body = read_object(request.body)
    matchers = matchers_from(body.get("matchers"))
    starts, ends = _time(body, "startsAt"), _time(body, "endsAt")
    now = timezone.now()
    if ends <= starts or ends <= now:
        raise InvalidValueError("endsAt", "must be later than startsAt and than now")
    values: dict[str, Any] = {
        "matchers": [matcher.as_json() for matcher in matchers],
        "starts_at": max(starts, now),
        "ends_at": ends,
        "created_by": check_text("createdBy", body.get("createdBy") or actor, 255, blank=False),
        "comment": check_text("comment", body.get("comment", ""), 2_000),
        "annotations": check_annotations(body.get("annotations") or {}),
    }
    replaced = body.get("id") or ""
    stored = _keep(None if not replaced else _find(str(replaced)), values, Context(f"key:{actor}"))
    return in_json(MadeSilence(str(stored.pk)))


@transaction.atomic
def _keep(old: Silence | None, values: dict[str, Any], context: Context) -> Silence:
    """The silence that `values` make, which may take the place of an old one."""
    now = timezone.now()
    if old is not None and getattr(old, "recurrence", None) is not None:
        raise _RequestError(400, "this silence recurs, which this API cannot express; change it at /silences")
    if old is None or old.ends_at <= now or values["matchers"] != old.matchers:
        if old is not None:
            # As Alertmanager: what a silence once held for stays explained, so another one takes its place.
            end_silence(old, context)
        row = Silence.objects.create(**values)
        note_change(row, None, context)
        return row
    before = configured(old)
    values["starts_at"] = min(old.starts_at, values["starts_at"])
    for name, value in values.items():
        setattr(old, name, value)
    old.save()
    note_change(old, before, context)
    return old


@csrf_exempt
def silence(request: HttpRequest, id: str) -> HttpResponse:
    return _by_method(request, {"GET": _get_silence, "DELETE": _end_silence}, id)


@_answers("incidents:read")
def _get_silence(request: HttpRequest, _: str, id: str) -> HttpResponse:  # noqa: ARG001
    return in_json(_silence(_find(id)))


@_answers("incidents:write")
def _end_silence(request: HttpRequest, actor: str, id: str) -> HttpResponse:  # noqa: ARG001
    end_silence(_find(id), Context(f"key:{actor}"))
    return HttpResponse(status=200)


def _find(id: str) -> Silence:
    try:
        return Silence.objects.get(pk=uuid.UUID(id))
    except (Silence.DoesNotExist, ValueError, ValidationError):
        raise _RequestError(404, f"silence {id[:60]} not found") from None


def _time(body: Mapping[str, Any], name: str) -> datetime:
    try:
        at = instant(body.get(name))
    except ValueError as error:
        raise InvalidValueError(name, str(error)) from None
    if at is None:
        raise InvalidValueError(name, "must be an RFC 3339 time, such as 2026-01-31T12:00:00Z")
    return at


def _silence(row: Silence) -> ListedSilence:
    now = timezone.now()
    state, problem = state_of(row, now), problem_of(row, now)
    # Of one that recurs the time that is now or comes next: that is all that this form can say.
    span = span_of(row, now) or Span(row.starts_at, row.ends_at)
    return ListedSilence(
        id=str(row.pk),
        # What cannot be read holds nothing, and this form has no other word for that.
        status=SilenceStatus("expired" if state == "unreadable" else state),
        matchers=[msgspec.convert(matcher.as_json(), SilenceMatcher) for matcher in matchers_shown(row)],
        starts_at=span.starts_at.astimezone(UTC),
        ends_at=span.ends_at.astimezone(UTC),
        updated_at=row.updated_at,
        created_by=row.created_by,
        comment=row.comment if problem is None else f"{row.comment} (cannot be read: {problem})",
        annotations=row.annotations,
        url=f"{settings.PUBLIC_URL}/silences",
    )
