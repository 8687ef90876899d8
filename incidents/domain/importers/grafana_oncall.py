"""Grafana OnCall: users, teams, schedules, shifts, escalation chains and their steps, as its HTTP API answers them.

Of shifts that overlap the one with the higher level is on call, so that levels are the order of our layers. Shifts of
one level that overlap are all on call there: they become a schedule each, and a policy pages all of them.
(grafana.com/docs/oncall, HTTP API reference)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final
from zoneinfo import ZoneInfo

from incidents.domain.importers.draft import DAY, WEEK, Draft, InvalidImportError, moment, times, zone_of
from incidents.domain.importers.exported import Export, Object, People, read_all, sorted_by_kind, text
from incidents.domain.importers.opsgenie import apart
from incidents.domain.oncall.layers import DAYS

_DAYS: Final = ("MO", "TU", "WE", "TH", "FR", "SA", "SU")
_UNITS: Final = {"hourly": ("h", 60), "daily": ("d", DAY), "weekly": ("w", WEEK)}
"""Unit of a turn and its minutes by `frequency`."""
REPEATS: Final = 5
"""As often as `repeat_escalation` takes the steps again there."""
PERSONS: Final = {
    "notify_persons": "persons_to_notify",
    "notify_person_next_each_time": "persons_to_notify_next_each_time",
}


@dataclass(slots=True)
class _Reader(Export):
    shifts: dict[str, Object] = field(default_factory=dict)
    steps: dict[str, list[Object]] = field(default_factory=dict)
    schedules: dict[str, list[str]] = field(default_factory=dict)


def grafana_oncall(files: Mapping[str, Any], known: Mapping[str, str], now: datetime) -> Draft:
    """Files by name, parsed; `known` are user names by mail address. Raises InvalidImportError."""
    found = sorted_by_kind(
        files, ("results",), _kind, "user, team, schedule, shift or escalation chain of Grafana OnCall"
    )
    draft = Draft()
    reader = _Reader(draft, People(draft, known), now)
    for _, one in found.get("user", []):
        reader.people.add(
            [text(one, "id"), text(one, "username")], text(one, "email"), text(one, "name", "username")
        )
    for _, one in found.get("team", []):
        slug = draft.name("teams", text(one, "name"))
        reader.teams[text(one, "id")] = slug
        draft.add("teams", {"slug": slug, "name": text(one, "name")})
    reader.shifts = {text(one, "id"): one for _, one in found.get("shift", [])}
    for _, one in found.get("step", []):
        reader.steps.setdefault(text(one, "escalation_chain_id"), []).append(one)
    read_all(reader, found, (("schedule", _schedule), ("chain", _chain)))
    for where, one in found.get("route", []):
        expression = text(one, "routing_regex") or "the default route"
        draft.leave(
            where, f"route of {text(one, 'integration_id')}: write {expression!r} as conditions of a route"
        )
    return draft


def _kind(one: Object) -> str | None:
    for kind, fields in (
        ("route", {"integration_id", "escalation_chain_id"}),
        ("step", {"escalation_chain_id", "position"}),
        ("shift", {"start", "duration"}),
        ("user", {"email", "username"}),
        ("schedule", {"type", "on_call_now"}),
        ("schedule", {"type", "time_zone"}),
        ("chain", {"name", "team_id"}),
        ("team", {"name", "id"}),
    ):
        if fields <= set(one):
            return kind
    return None


def _team(reader: _Reader, one: Object) -> str | None:
    return reader.teams.get(text(one, "team_id"))


# Schedules
# ----------------------------------------------------------------------------------------------------------
def _schedule(reader: _Reader, where: str, one: Object) -> None:
    name = text(one, "name")
    if text(one, "type") == "ical":
        reader.draft.leave(
            where,
            f"schedule {name} is an external calendar; define layers instead, and import absences from .ics",
        )
        return
    zone = zone_of(text(one, "time_zone") or "UTC", where)
    levels: dict[int, list[dict[str, Any]]] = {}
    for key in one.get("shifts") or []:
        shift = reader.shifts.get(str(key))
        if shift is None:
            reader.draft.leave(where, f"shift {key} of schedule {name} is in none of the files")
        elif layer := _layer(reader, f"{where}: {name}, shift {text(shift, 'name')}", shift, zone):
            levels.setdefault(int(shift.get("level") or 0), []).append(layer)
    if not levels:
        reader.draft.leave(where, f"schedule {name} has no shift in use")
        return
    together = all(apart(layers) for layers in levels.values())
    ordered = [layer for _, layers in sorted(levels.items()) for layer in layers]
    if not together:
        reader.draft.leave(
            where,
            f"shifts of one level of {name} overlap, and all of them are on call: each is a schedule of its own",
        )
    for group in [ordered] if together else [[layer] for layer in ordered]:
        title = name if together else f"{name}, {group[0]['name']}"
        slug = reader.draft.name("schedules", title)
        names: set[str] = set()
        for layer in group:
            layer["name"] = _free(layer["name"], names)
        reader.draft.add(
            "schedules",
            {"slug": slug, "name": title, "team": _team(reader, one), "time_zone": zone.key, "layers": group},
        )
        reader.schedules.setdefault(text(one, "id"), []).append(slug)


def _free(name: str, names: set[str]) -> str:
    free, number = name, 1
    while free in names:
        number += 1
        free = f"{name[:56]} {number}"
    names.add(free)
    return free


def _layer(reader: _Reader, where: str, shift: Object, zone: ZoneInfo) -> dict[str, Any] | None:
    kind, frequency = text(shift, "type"), text(shift, "frequency")
    if kind == "single_event":
        reader.draft.leave(where, "is a single event: add it as an override if it still matters")
        return None
    if frequency not in _UNITS:
        reader.draft.leave(where, f"a frequency of {frequency or 'none'} cannot be translated")
        return None
    until = text(shift, "until")
    if until and moment(until, where) <= reader.now:
        return None
    groups = shift.get("rolling_users") if kind == "rolling_users" else [shift.get("users") or []]
    people = _people(reader, where, groups)
    if not people:
        reader.draft.leave(where, "is left out: it has no people")
        return None
    unit, long = _UNITS[frequency]
    interval, seconds = shift.get("interval") or 1, shift.get("duration")
    if not isinstance(interval, int) or not isinstance(seconds, int) or seconds <= 0 or interval < 1:
        raise InvalidImportError(f"{where}: interval and duration must be whole numbers")
    length = max(1, seconds // 60)
    own = zone_of(text(shift, "time_zone"), where) if text(shift, "time_zone") else zone
    # Times of shifts are local times of the zone, whatever offset is written behind them.
    start = moment(text(shift, "rotation_start", "start"), where).replace(tzinfo=None)
    at = moment(text(shift, "start"), where).replace(tzinfo=None)
    spans = _times(shift, frequency, length, at) if length < long * interval else []
    if spans and interval > 1:
        reader.draft.leave(
            where, f"recurs every {interval} times only; here it applies in each {frequency[:-2]} of a turn"
        )
    return {
        "name": (text(shift, "name") or "shift")[:60],
        "people": people,
        "start": start.replace(hour=at.hour, minute=at.minute).strftime("%Y-%m-%dT%H:%M"),
        **({"end": moment(until, where).replace(tzinfo=None).strftime("%Y-%m-%dT%H:%M")} if until else {}),
        "turn": f"{interval}{unit}",
        **({"times": spans} if spans else {}),
        **({"time_zone": own.key} if own.key != zone.key else {}),
    }


def _people(reader: _Reader, where: str, groups: object) -> list[str]:
    found = []
    for group in groups if isinstance(groups, list) else []:
        names = [name for one in group if (name := reader.people.of(where, one))]
        if len(names) > 1:
            reader.draft.leave(where, f"{', '.join(names)} are on call together; {names[0]} is kept")
        found += names[:1]
    return found


def _times(shift: Object, frequency: str, length: int, start: datetime) -> list[dict[str, Any]]:
    minute = start.hour * 60 + start.minute
    if frequency == "hourly" or length >= WEEK:
        return []
    if frequency == "daily" and not shift.get("by_day"):
        (daily,) = times(minute, min(length, DAY))
        return [{**daily, "days": list(DAYS)}]
    days = [_DAYS.index(str(day)) for day in shift.get("by_day") or () if str(day) in _DAYS]
    return [span for day in days or [start.weekday()] for span in times(day * DAY + minute, length)]


# Escalation chains
# ----------------------------------------------------------------------------------------------------------
def _chain(reader: _Reader, where: str, one: Object) -> None:
    name, wait, repeats = text(one, "name"), 0, 0
    steps: list[dict[str, Any]] = []
    for step in sorted(
        reader.steps.get(text(one, "id"), []), key=lambda step: int(step.get("position") or 0)
    ):
        here = f"{where}: {name}, step {int(step.get('position') or 0) + 1}"
        kind = text(step, "type")
        if kind == "wait":
            wait += int(step.get("duration") or 0)
        elif kind == "repeat_escalation":
            repeats = REPEATS
        elif actions := _actions(reader, here, kind, step):
            if steps and not wait:
                steps[-1]["actions"] += actions
            else:
                steps.append({"after": wait, "actions": actions})
            wait = 0
    if not steps:
        reader.draft.leave(where, f"escalation chain {name} pages no person or schedule of the files")
        return
    reader.draft.add(
        "escalation_policies",
        {
            "slug": reader.draft.name("escalation_policies", name),
            "name": name,
            "steps": steps,
            "repeats": repeats,
            "repeat_after": max(wait, 60),
        },
    )


def _actions(reader: _Reader, where: str, kind: str, step: Object) -> list[dict[str, str]]:
    if kind in PERSONS:
        if kind == "notify_person_next_each_time":
            reader.draft.leave(where, "pages all of them; a schedule with turns pages one at a time")
        found = [reader.people.of(where, one) for one in step.get(PERSONS[kind]) or ()]
        return [{"person": one} for one in found if one]
    if kind == "notify_on_call_from_schedule":
        key = text(step, "notify_on_call_from_schedule")
        if key not in reader.schedules:
            reader.draft.leave(where, f"schedule {key} is in none of the files or not in use")
        return [{"schedule": slug} for slug in reader.schedules.get(key, [])]
    if kind == "notify_team_members" and (team := reader.teams.get(text(step, "notify_to_team_members"))):
        return [{"team": team}]
    reader.draft.leave(where, f"{kind or 'a step without a type'} cannot be translated")
    return []
