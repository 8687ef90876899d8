"""PagerDuty: users, teams, schedules, escalation policies and services, as its REST API answers them.

A layer there is over those after it in the answer; ours is over those before it, so that layers are turned round. The
delay of an escalation rule is the time until the next one. (developer.pagerduty.com/api-reference)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from zoneinfo import ZoneInfo

from incidents.domain.escalation.policy import MOST_REPEATS, SHORTEST_WAIT
from incidents.domain.importers.draft import (
    DAY,
    Draft,
    InvalidImportError,
    local,
    minutes,
    moment,
    times,
    turn,
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
from incidents.domain.oncall.layers import DAYS, MOST_LAYERS

KEYS = ("users", "user", "teams", "team", "schedules", "schedule", "escalation_policies", "escalation_policy",
        "services", "service")  # fmt: skip


@dataclass(slots=True)
class _Reader(Export):
    schedules: dict[str, str] = field(default_factory=dict)
    policies: dict[str, str] = field(default_factory=dict)


def pagerduty(files: Mapping[str, Any], known: Mapping[str, str], now: datetime) -> Draft:
    """Files by name, parsed; `known` are user names by mail address. Raises InvalidImportError."""
    found = sorted_by_kind(
        files, KEYS, _kind, "user, team, schedule, escalation policy or service of PagerDuty"
    )
    draft = Draft()
    kinds = (
        ("team", _team),
        ("user", _user),
        ("schedule", _schedule),
        ("policy", _policy),
        ("service", _service),
    )
    return read_all(_Reader(draft, People(draft, known), now), found, kinds)


def _kind(one: Object) -> str | None:
    kind = text(one, "type").removesuffix("_reference")
    if kind in ("user", "team", "schedule", "service"):
        return kind
    if kind == "escalation_policy" or "escalation_rules" in one:
        return "policy"
    if "schedule_layers" in one:
        return "schedule"
    return "user" if "email" in one else None


def _named(one: Object) -> str:
    return text(one, "name", "summary", "id")


def _team(reader: _Reader, where: str, one: Object) -> None:
    if text(one, "id") in reader.teams:
        return
    slug = reader.draft.name("teams", _named(one))
    reader.teams[text(one, "id")] = slug
    reader.draft.add(
        "teams", {"slug": slug, "name": _named(one), "description": text(one, "description") or None}
    )
    if part(one, "parent"):
        reader.draft.leave(f"{where}: parent", "teams have no teams above them")


def _user(reader: _Reader, where: str, one: Object) -> None:
    if not (mail := text(one, "email")):
        reader.draft.leave(where, "a user without a mail address cannot be matched; add the person by hand")
        return
    name = reader.people.add([text(one, "id")], mail, _named(one))
    for team in inner(one, "teams"):
        if text(team, "id") not in reader.teams:
            _team(reader, where, team)
        reader.draft.add(
            "members", {"team": reader.teams[text(team, "id")], "user": name, "role": "responder"}
        )
    for method in inner(one, "contact_methods"):
        kind = text(method, "type").removesuffix("_contact_method").removesuffix("_reference")
        if "email" in kind and text(method, "address").lower() == mail.lower():
            continue  # pages go to the address of the account anyway
        if "email" in kind and text(method, "address"):
            label = reader.draft.name(f"methods of {name}", "mail")
            address = reader.draft.secret("METHOD_ADDRESS", text(method, "address"), name, label)
            reader.draft.add(
                "contact_methods", {"user": name, "name": label, "kind": "email", "address": address}
            )
        else:
            reader.draft.leave(
                f"{where}: {kind or 'contact method'}",
                f"calls, messages and push go through your own provider; {name} adds it under Settings, Notifications",
            )


def _schedule(reader: _Reader, where: str, one: Object) -> None:
    name = _named(one)
    if "schedule_layers" not in one:
        reader.draft.leave(where, f"schedule {name} has no layers: export with `include[]=schedule_layers`")
        return
    zone = zone_of(text(one, "time_zone") or "UTC", where)
    layers = []
    for layer in reversed(inner(one, "schedule_layers")):
        if (read := _layer(reader, f"{where}: {_named(layer)}", layer, zone)) is not None:
            layers.append(read)
    if len(layers) > MOST_LAYERS:
        reader.draft.leave(where, f"of {len(layers)} layers the last {MOST_LAYERS} are kept")
    if not layers:
        reader.draft.leave(where, f"schedule {name} has no layer in use")
        return
    slug = reader.draft.name("schedules", name)
    reader.schedules[text(one, "id")] = slug
    reader.draft.add(
        "schedules",
        {
            "slug": slug,
            "name": name,
            "team": _first_team(reader, where, one),
            "time_zone": zone.key,
            "layers": layers[-MOST_LAYERS:],
        },
    )
    if inner(part(one, "overrides_subschedule"), "rendered_schedule_entries"):
        reader.draft.leave(
            f"{where}: overrides", "add overrides that still matter on the page of the schedule"
        )


def _layer(reader: _Reader, where: str, layer: Object, zone: ZoneInfo) -> dict[str, Any] | None:
    end = text(layer, "end")
    if end and moment(end, where) <= reader.now:
        return None
    found = [reader.people.of(where, text(part(one, "user"), "id")) for one in inner(layer, "users")]
    people = [one for one in found if one]
    seconds = layer.get("rotation_turn_length_seconds")
    length = turn(seconds) if isinstance(seconds, int) else None
    if not people or length is None:
        reason = (
            "it has no members" if not people else f"a turn of {seconds} seconds is no whole number of hours"
        )
        reader.draft.leave(where, f"the layer is left out: {reason}")
        return None
    restrictions = [span for one in inner(layer, "restrictions") for span in _times(where, one)]
    return {
        "name": (_named(layer) or "layer")[:60],
        "people": people,
        "start": local(text(layer, "rotation_virtual_start", "start"), zone, where),
        **({"end": local(end, zone, where)} if end else {}),
        "turn": length,
        **({"times": restrictions} if restrictions else {}),
    }


def _times(where: str, one: Object) -> list[dict[str, Any]]:
    start = minutes(text(one, "start_time_of_day"), where)
    seconds = one.get("duration_seconds")
    if not isinstance(seconds, int) or seconds <= 0:
        raise InvalidImportError(f"{where}: duration_seconds must be a number of seconds")
    length = max(1, seconds // 60)
    if text(one, "type") == "weekly_restriction":
        day = one.get("start_day_of_week")
        if not isinstance(day, int) or not 1 <= day <= 7:
            raise InvalidImportError(f"{where}: start_day_of_week must be 1 (Monday) to 7")
        return times((day - 1) * DAY + start, length)
    (daily,) = times(start, min(length, DAY))
    return [{**daily, "days": list(DAYS)}]


def _policy(reader: _Reader, where: str, one: Object) -> None:
    name = _named(one)
    rules = inner(one, "escalation_rules")
    steps, wait, delay = [], 0, SHORTEST_WAIT
    for place, rule in enumerate(rules):
        here = f"{where}: {name}, rule {place + 1}"
        actions = [action for target in inner(rule, "targets") if (action := _target(reader, here, target))]
        value = rule.get("escalation_delay_in_minutes")
        delay = int(value) * 60 if isinstance(value, int | float) else 1800
        if actions:
            steps.append({"after": wait, "actions": actions})
            wait = 0
        wait += delay
    if not steps:
        reader.draft.leave(where, f"escalation policy {name} pages no person or schedule of the files")
        return
    slug = reader.draft.name("escalation_policies", name)
    reader.policies[text(one, "id")] = slug
    team = _first_team(reader, where, one)
    if team and any(
        policy.get("team") == team for policy in reader.draft.sections.get("escalation_policies", [])
    ):
        reader.draft.leave(f"{where}: {name}", f"{team} has a policy already; routes name this one")
        team = None
    loops = one.get("num_loops")
    reader.draft.add(
        "escalation_policies",
        {
            "slug": slug,
            "name": name,
            "team": team,
            "steps": steps,
            "repeats": min(loops, MOST_REPEATS) if isinstance(loops, int) else 0,
            "repeat_after": max(delay, SHORTEST_WAIT),
        },
    )


def _target(reader: _Reader, where: str, target: Object) -> dict[str, str] | None:
    kind = text(target, "type").removesuffix("_reference")
    if kind == "user":
        person = reader.people.of(where, text(target, "id"))
        return {"person": person} if person else None
    if kind == "schedule":
        if (slug := reader.schedules.get(text(target, "id"))) is None:
            reader.draft.leave(
                where, f"schedule {_named(target)} is in none of the files or has no layer in use"
            )
            return None
        return {"schedule": slug}
    reader.draft.leave(where, f"{kind or 'a target'} {_named(target)} cannot be paged by a policy")
    return None


def _service(reader: _Reader, where: str, one: Object) -> None:
    name = _named(one)
    slug = reader.draft.name("services", name)
    policy = reader.policies.get(text(part(one, "escalation_policy"), "id"))
    team = _first_team(reader, where, one)
    reader.draft.add(
        "services",
        {
            "slug": slug,
            "name": name,
            "description": text(one, "description") or None,
            "team": team,
            "patterns": [],
        },
    )
    reader.draft.leave(where, f"service {name}: add patterns of its components, so that alerts find it")
    if policy:
        route = reader.draft.name("routes", slug)
        reader.draft.add(
            "routes", {"name": route, "pattern": "", "when": {"service": slug}, "policy": policy}
        )


def _first_team(reader: _Reader, where: str, one: Object) -> str | None:
    teams = inner(one, "teams")
    for team in teams:
        if text(team, "id") not in reader.teams:
            _team(reader, where, team)
    if len(teams) > 1:
        reader.draft.leave(f"{where}: teams", f"one team is kept, {reader.teams[text(teams[0], 'id')]}")
    return reader.teams[text(teams[0], "id")] if teams else None
