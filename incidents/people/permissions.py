"""Whether the one who asks may: the one place where roles hold, for the API, the console and whatever else comes.

People are actors `user:NAME`. Keys have their scopes, which the API checks, and the system is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import timedelta
from typing import Any, Final

from django.contrib.auth import get_user_model

from incidents.domain.incident.alerts import matched_labels
from incidents.domain.permissions import ANYWHERE, CONFIGURE, ForbiddenError, Person, may, refusal
from incidents.domain.routing.rules import DEEPEST, covers
from incidents.domain.suppression.rules import Matcher
from incidents.domain.values import STATES, InvalidValueError
from incidents.incident.models import IncidentRow, MemberAlert
from incidents.teams.models import Route, Service, actor_name, people_allowed, person
from ingest.queries import Context, alerts

LONG_SILENCE = timedelta(days=31)
AT_A_TEAM: Final = "resolve"
"""Permissions of a responder at their own team only: with them goes silencing of the team's alerts."""
UNRESOLVED: Final = tuple(state for state in STATES if state != "resolved")
MOST_ALERTS: Final = 5_000
"""Firing alerts of other teams that a silence is held against, the newest first."""
AT_ONCE: Final = 500

__all__ = [
    "actor_name",
    "allow",
    "allow_configuring",
    "allow_patterns",
    "allow_route",
    "allow_silence",
    "check_account",
    "people_allowed",
    "person",
    "refusals",
]


def check_account(field: str, name: str) -> None:
    """Raises InvalidValueError where nobody who can sign in has this user name."""
    users = get_user_model()
    if not users.objects.filter(**{users.USERNAME_FIELD: name, "is_active": True}).exists():
        raise InvalidValueError(field, f"no active account {name!r}")


def allow(command: str, context: Context, incident_id: str | None = None) -> None:
    """Raises ForbiddenError where the actor is a person who may not do that to this incident."""
    name = actor_name(context)
    if name is None:
        return
    actor = person(name)
    if actor is None or may(actor, command, ()):
        return
    teams = () if command in ANYWHERE or incident_id is None else _teams(command, incident_id)
    if not may(actor, command, teams):
        raise ForbiddenError(refusal(actor, command, teams, people_allowed(command, teams)))


def allow_configuring(context: Context, *things: Mapping[str, Any] | None) -> None:
    """Raises ForbiddenError where a person may not configure what belongs to the `team` of each of these, before and
    after.

    Who is staff, or a manager of some team, the endpoint has asked for; here it is asked which team's.
    """
    name = actor_name(context)
    actor = None if name is None else person(name)
    if actor is None:
        return
    for thing in things:
        team = None if thing is None else thing.get("team")
        teams = (team,) if team else ()
        if thing is not None and not may(actor, CONFIGURE, teams):
            raise ForbiddenError(
                refusal(actor, CONFIGURE, teams, people_allowed(CONFIGURE, teams) if teams else ())
            )


def allow_route(context: Context, *rules: Mapping[str, Any] | None) -> None:
    """Raises ForbiddenError where a person who is not staff changes a rule that decides over more than a team of
    theirs.

    The rules are as the API shows them, before and after. What a rule beneath one of the same team decides stays
    in that team; a rule elsewhere takes incidents of others.
    """
    by = _not_staff(context)
    for rule in rules if by is not None else ():
        if rule is None or (above := _team_of_rule(rule.get("parent"))) == rule.get("team"):
            continue
        team = rule.get("team")
        where = "on the first level" if rule.get("parent") is None else f"beneath one of {above or 'no team'}"
        raise ForbiddenError(
            f"a rule {where} takes incidents of other teams and is for staff; managers of {team} change rules "
            f"beneath one that gives incidents to {team}"
        )


def allow_patterns(
    context: Context, before: Mapping[str, Any] | None, after: Mapping[str, Any] | None
) -> None:
    """Raises ForbiddenError where a person who is not staff lets a service have components that its team does not have.

    A team has what the patterns of its services and of its rules match; `before` and `after` are as the API shows them.
    """
    if after is None or _not_staff(context) is None:
        return
    team, slug = after.get("team"), after.get("slug")
    held = [] if before is None or before.get("team") != team else list(before["patterns"])
    held += [
        pattern
        for one in Service.objects.filter(team__slug=team).exclude(slug=slug)
        for pattern in one.patterns
    ]
    held += Route.objects.filter(team__slug=team).exclude(pattern="").values_list("pattern", flat=True)
    for pattern in after["patterns"]:
        if not any(covers(one, pattern) for one in held):
            raise ForbiddenError(
                f"`{pattern}` matches components beyond those that services and rules of {team} name; staff give a "
                "team its components"
            )


def allow_silence(context: Context, matchers: Collection[Matcher], lasts: timedelta) -> None:
    """Raises ForbiddenError where a person who is not staff silences what fires now at another team, or for very long.

    What the matchers will fit later cannot be told; so a silence of more than LONG_SILENCE takes a manager.
    """
    allow("silence", context)
    by = _not_staff(context)
    if by is None:
        return
    if lasts > LONG_SILENCE and not by.has("manager"):
        raise ForbiddenError(
            f"a silence of more than {LONG_SILENCE.days} days requires the role manager, or staff; "
            f"{by.name} has neither"
        )
    own = [team for team in by.roles if may(by, AT_A_TEAM, (team,))]
    if (found := _fitting_elsewhere(matchers, own)) is not None:
        raise ForbiddenError(
            f"it would silence #{found.number} of {found.team}, which is for responders of {found.team} and staff; add"
            " a matcher that leaves it out"
        )


def _fitting_elsewhere(matchers: Collection[Matcher], own: Collection[str]) -> IncidentRow | None:
    """An open incident of a team that is none of one's own, with a firing alert that the matchers fit."""
    members = MemberAlert.objects.filter(resolved=False, incident__state__in=UNRESOLVED)
    members = members.exclude(incident__team__in=own).order_by("-at", "-pk").select_related("incident")
    newest = {str(one.alert): one.incident for one in members[:MOST_ALERTS]}
    ids = list(newest)
    for start in range(0, len(ids), AT_ONCE):
        for found in alerts(ids[start : start + AT_ONCE]):
            alert = found.alert
            labels = matched_labels(alert.labels, alert.component, found.integration, alert.key)
            if all(one.matches(labels) for one in matchers):
                return newest[found.id]
    return None


def _not_staff(context: Context) -> Person | None:
    """The person who acts, if roles hold and they are not staff."""
    name = actor_name(context)
    actor = None if name is None else person(name)
    return None if actor is None or actor.is_staff else actor


def _team_of_rule(name: str | None) -> str | None:
    """The team that a rule gives incidents to, by itself or from above."""
    rule = Route.objects.select_related("team").filter(name=name).first() if name else None
    for _ in range(DEEPEST):
        if rule is None or rule.team is not None:
            break
        rule = rule.parent
    return rule.team.slug if rule is not None and rule.team is not None else None


def _teams(command: str, incident_id: str) -> tuple[str, ...]:
    """The team of an incident; whoever handed it over may take that back, too."""
    row = IncidentRow.objects.filter(pk=incident_id).values_list("team", "handed_from").first()
    if row is None:
        return ()
    team, before = row
    return (team, before) if command == "undo" and before else (team,)


def refusals(name: str, commands: Collection[str], incident_id: str) -> dict[str, str]:
    """Of these commands those that the person would be refused on this incident, each with the reason and who could."""
    actor = person(name)
    if actor is None:
        return {}
    refused: dict[str, str] = {}
    known: dict[tuple[str, ...], list[str]] = {}
    for command in sorted(commands):
        if may(actor, command, ()):
            continue
        teams = () if command in ANYWHERE else _teams(command, incident_id)
        if not may(actor, command, teams):
            can = known.setdefault(teams, people_allowed(command, teams))
            refused[command] = refusal(actor, command, teams, can)
    return refused
