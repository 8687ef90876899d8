"""Opsgenie: users, teams, schedules, escalations and services, as its REST API answers them or its backup tool saves
them.

The delay of an escalation rule counts from the alert, ours from the step before. All rotations of a schedule are on
call at the same time there, one at a time here: rotations that overlap become a schedule each, and a policy pages all
of them. (docs.opsgenie.com/docs/api-overview)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from incidents.domain.escalation.policy import MOST_REPEATS, SHORTEST_WAIT
from incidents.domain.importers.draft import (
    DAY,
    WEEK,
    Draft,
    InvalidImportError,
    local,
    moment,
    times,
    zone_of,
)
from incidents.domain.importers.exported import (
    Export,
    Object,
    People,
    inner,
    part,
    read_all,
    sorted_by_kind,
    text,
)
from incidents.domain.oncall.layers import DAYS

_WEEK: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_TURNS: Final = {"hourly": "h", "daily": "d", "weekly": "w"}
_SECONDS: Final = {"minutes": 60, "hours": 3600, "days": 86_400}


@dataclass(slots=True)
class _Reader(Export):
    schedules: dict[str, list[str]] = field(default_factory=dict)


def opsgenie(files: Mapping[str, Any], known: Mapping[str, str], now: datetime) -> Draft:
    """Files by name, parsed; `known` are user names by mail address. Raises InvalidImportError."""
    found = sorted_by_kind(files, ("data",), _kind, "user, team, schedule, escalation or service of Opsgenie")
    draft = Draft()
    kinds = (
        ("user", _user),
        ("team", _team),
        ("schedule", _schedule),
        ("escalation", _escalation),
        ("service", _service),
    )
    read_all(_Reader(draft, People(draft, known), now), found, kinds)
    for kind in ("routing rule", "integration", "policy"):
        for where, one in found.get(kind, []):
            draft.leave(where, f"{kind} {text(one, 'name')}: write it as a route")
    return draft


def _kind(one: Object) -> str | None:
    for kind, fields in (
        ("user", {"username"}),
        ("schedule", {"rotations"}),
        ("escalation", {"rules", "repeat"}),
        ("routing rule", {"criteria"}),
        ("escalation", {"rules"}),
        ("service", {"teamId"}),
        ("schedule", {"timezone"}),
        ("team", {"members"}),
        ("policy", {"policyDescription"}),
        ("integration", {"enabled", "type"}),
        ("team", {"name", "id"}),
    ):
        if fields <= set(one):
            return kind
    return None


def _user(reader: _Reader, where: str, one: Object) -> None:
    mail = text(one, "username")
    name = reader.people.add([text(one, "id")], mail, text(one, "fullName"))
    if inner(one, "userContacts"):
        reader.draft.leave(
            f"{where}: userContacts",
            f"{name} adds phones and apps under Settings, Notifications; mail works at once",
        )


def _team(reader: _Reader, where: str, one: Object) -> None:
    slug = reader.draft.name("teams", text(one, "name"))
    reader.teams[text(one, "id")] = reader.teams[text(one, "name")] = slug
    reader.draft.add(
        "teams", {"slug": slug, "name": text(one, "name"), "description": text(one, "description") or None}
    )
    if "members" not in one:
        reader.draft.leave(where, f"team {slug} has no members in the file: ask for each team by its id")
    for member in inner(one, "members"):
        user = part(member, "user")
        if person := reader.people.of(where, text(user, "id"), text(user, "username")):
            role = "manager" if text(member, "role") == "admin" else "responder"
            reader.draft.add("members", {"team": slug, "user": person, "role": role})


def _owner(reader: _Reader, where: str, one: Object) -> str | None:
    team = part(one, "ownerTeam")
    if not team:
        return None
    found = reader.teams.get(text(team, "id")) or reader.teams.get(text(team, "name"))
    if found is None:
        reader.draft.leave(where, f"its team {text(team, 'name', 'id')} is in none of the files")
    return found


# Schedules
# ----------------------------------------------------------------------------------------------------------
def _schedule(reader: _Reader, where: str, one: Object) -> None:
    name, keys = text(one, "name"), [text(one, "id"), text(one, "name")]
    if one.get("enabled") is False:
        reader.draft.leave(where, f"schedule {name} is disabled")
        return
    zone = zone_of(text(one, "timezone") or "UTC", where)
    if "rotations" not in one:
        reader.draft.leave(where, f"schedule {name} has no rotations: export with `expand=rotation`")
        return
    read = [_rotation(reader, f"{where}: {name}", rotation, zone) for rotation in inner(one, "rotations")]
    layers = [layer for layer in read if layer is not None]
    if not layers:
        reader.draft.leave(where, f"schedule {name} has no rotation in use")
        return
    groups = [layers] if apart(layers) else [[layer] for layer in layers]
    if len(groups) > 1:
        reader.draft.leave(
            where,
            f"rotations of {name} overlap, and all of them are on call: they are {len(groups)} schedules",
        )
    team = _owner(reader, where, one)
    for group in groups:
        title = name if len(groups) == 1 else f"{name}, {group[0]['name']}"
        slug = reader.draft.name("schedules", title)
        reader.draft.add(
            "schedules", {"slug": slug, "name": title, "team": team, "time_zone": zone.key, "layers": group}
        )
        for key in keys:
            reader.schedules.setdefault(key, []).append(slug)


def _rotation(reader: _Reader, where: str, one: Object, zone: ZoneInfo) -> dict[str, Any] | None:
    here = f"{where}, rotation {text(one, 'name')}"
    end = text(one, "endDate")
    if end and moment(end, here) <= reader.now:
        return None
    people = []
    for person in inner(one, "participants"):
        if text(person, "type") != "user":
            reader.draft.leave(
                here, f"takes turns with people only, not with a {text(person, 'type') or '?'}"
            )
        elif name := reader.people.of(here, text(person, "id"), text(person, "username")):
            people.append(name)
    if not people:
        reader.draft.leave(here, "is left out: it has no people")
        return None
    unit, length = _TURNS.get(text(one, "type")), one.get("length", 1)
    if unit is None or not isinstance(length, int) or length < 1:
        raise InvalidImportError(f"{here}: type must be hourly, daily or weekly, and length a whole number")
    spans = _restrictions(here, part(one, "timeRestriction"))
    return {
        "name": (text(one, "name") or "rotation")[:60],
        "people": people,
        "start": local(text(one, "startDate"), zone, here),
        **({"end": local(end, zone, here)} if end else {}),
        "turn": f"{length}{unit}",
        **({"times": spans} if spans else {}),
    }


def _restrictions(where: str, one: Object) -> list[dict[str, Any]]:
    if not one:
        return []
    if text(one, "type") == "time-of-day":
        start, end = _clock(where, part(one, "restriction"))
        (daily,) = times(start, (end - start) % DAY or DAY)
        return [{**daily, "days": list(DAYS)}]
    found = []
    for each in inner(one, "restrictions"):
        start, end = _clock(where, each)
        first, last = (_day(where, each, name) for name in ("startDay", "endDay"))
        found += times(first * DAY + start, ((last - first) * DAY + end - start) % WEEK or WEEK)
    return found


def _clock(where: str, one: Object) -> tuple[int, int]:
    try:
        values = [int(one.get(name) or 0) for name in ("startHour", "startMin", "endHour", "endMin")]
    except (TypeError, ValueError):
        raise InvalidImportError(f"{where}: hours and minutes of a restriction must be numbers") from None
    return values[0] * 60 + values[1], values[2] * 60 + values[3]


def _day(where: str, one: Object, name: str) -> int:
    day = text(one, name).lower()
    if day not in _WEEK:
        raise InvalidImportError(f"{where}: {name} must be a day of the week, not {one.get(name)!r}")
    return _WEEK.index(day)


def apart(layers: Sequence[Mapping[str, Any]]) -> bool:
    """Whether no two layers apply at the same minute of a week; one that always applies overlaps every other."""
    taken: set[int] = set()
    for layer in layers:
        minutes = {minute for span in layer.get("times", []) for minute in _minutes(span)} or set(range(WEEK))
        if taken & minutes:
            return False
        taken |= minutes
    return True


def _minutes(span: Mapping[str, Any]) -> set[int]:
    start, end = (int(text[:2]) * 60 + int(text[3:]) for text in (span["from"], span["to"]))
    length = end - start if end > start else end - start + DAY
    return {(DAYS.index(day) * DAY + start + at) % WEEK for day in span["days"] for at in range(length)}


# Escalations
# ----------------------------------------------------------------------------------------------------------
def _escalation(reader: _Reader, where: str, one: Object) -> None:
    name = text(one, "name")
    due: dict[int, list[dict[str, str]]] = {}
    for place, rule in enumerate(inner(one, "rules")):
        here = f"{where}: {name}, rule {place + 1}"
        if text(rule, "condition") == "if-not-closed":
            reader.draft.leave(here, "pages until an acknowledgement, not until the alert is closed")
        due.setdefault(_delay(here, rule), []).extend(_recipients(reader, here, rule))
    steps, before = [], 0
    for at, actions in sorted(due.items()):
        if actions:
            steps.append({"after": at - before, "actions": list({str(a): a for a in actions}.values())})
            before = at
    if not steps:
        reader.draft.leave(where, f"escalation {name} pages no person or schedule of the files")
        return
    team = _owner(reader, where, one)
    if team and any(
        policy.get("team") == team for policy in reader.draft.sections.get("escalation_policies", [])
    ):
        reader.draft.leave(f"{where}: {name}", f"{team} has a policy already; name this one in a route")
        team = None
    repeat = part(one, "repeat")
    count, wait = (repeat.get(field) for field in ("count", "waitInterval"))
    reader.draft.add(
        "escalation_policies",
        {
            "slug": reader.draft.name("escalation_policies", name),
            "name": name,
            "team": team,
            "steps": steps,
            "repeats": min(count, MOST_REPEATS) if isinstance(count, int) else 0,
            "repeat_after": max(wait * 60 if isinstance(wait, int) else 0, SHORTEST_WAIT),
        },
    )


def _delay(where: str, rule: Object) -> int:
    delay = part(rule, "delay")
    amount, unit = delay.get("timeAmount", 0), text(delay, "timeUnit") or "minutes"
    if not isinstance(amount, int) or unit not in _SECONDS:
        raise InvalidImportError(f"{where}: delay must be a number of minutes, hours or days")
    return amount * _SECONDS[unit]


def _recipients(reader: _Reader, where: str, rule: Object) -> list[dict[str, str]]:
    one, notify = part(rule, "recipient"), text(rule, "notifyType") or "default"
    kind = text(one, "type")
    if notify not in ("default", "all", "users") or (kind == "schedule" and notify != "default"):
        reader.draft.leave(where, f"notifyType {notify}: pages who is on call, or the whole team")
    if kind == "user":
        person = reader.people.of(where, text(one, "id"), text(one, "username"))
        return [{"person": person}] if person else []
    if kind == "schedule":
        slugs = reader.schedules.get(text(one, "id")) or reader.schedules.get(text(one, "name")) or []
        if not slugs:
            reader.draft.leave(
                where, f"schedule {text(one, 'name', 'id')} is in none of the files or not in use"
            )
        return [{"schedule": slug} for slug in slugs]
    team = reader.teams.get(text(one, "id")) or reader.teams.get(text(one, "name"))
    if kind == "team" and team:
        return [{"team": team}]
    reader.draft.leave(where, f"{kind or 'recipient'} {text(one, 'name', 'id')} is in none of the files")
    return []


def _service(reader: _Reader, where: str, one: Object) -> None:
    name = text(one, "name")
    reader.draft.add(
        "services",
        {
            "slug": reader.draft.name("services", name),
            "name": name,
            "description": text(one, "description") or None,
            "team": reader.teams.get(text(one, "teamId")),
            "patterns": [],
        },
    )
    reader.draft.leave(where, f"service {name}: add patterns of its components, so that alerts find it")
