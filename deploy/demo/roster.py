"""The people of the demo: who they are, who is on call, who is called when; configured through the public API.

Four people with names of roles, two rotations, a policy for each team that has people, and an override that one of
them makes. What is there already stays as it is, so that a restart changes nothing that was edited since.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, time, timedelta
from typing import Any, Final

from deploy.demo.sender import Sender

Json = dict[str, Any]

STORAGE, STORAGE_LEAD = "storage-engineer", "storage-lead"
NETWORK, NETWORK_LEAD = "network-engineer", "network-lead"
PEOPLE: Final[Mapping[str, Mapping[str, str]]] = {
    STORAGE: {"storage": "responder", "services": "responder"},
    STORAGE_LEAD: {"storage": "manager", "services": "responder"},
    NETWORK: {"network": "responder", "compute": "responder"},
    NETWORK_LEAD: {"network": "manager", "compute": "manager"},
}
"""Role by team of each person."""
PAGER = "pager"
OVERRIDE_LASTS = timedelta(hours=4)


def set_up(admin: Sender, password: str, pager: str, *, moved: bool) -> bool:
    """Configure what is missing; whether anything was.

    `pager` is the address that pages go to; `moved`: it is another one than at the last start.
    """
    present = _names(admin, "/api/v1/users", "username")
    new = [name for name in PEOPLE if name not in present]
    for name in new:
        admin.post("/api/v1/users", {"username": name, "password": password})
        for team, role in PEOPLE[name].items():
            admin.put(f"/api/v1/teams/{team}/members/{name}", {"role": role})
    for name in PEOPLE:
        _give_pager(admin, name, f"{pager}/{name}", moved)
    changed = bool(new)
    for path, wanted in (
        ("/api/v1/schedules", rotations(datetime.now(UTC))),
        ("/api/v1/escalation_policies", policies()),
    ):
        present = _names(admin, path, "slug")
        for one in wanted:
            if one["slug"] not in present:
                admin.post(path, one)
                changed = True
    return changed


def override(person: Sender, now: datetime) -> None:
    """The lead stands in for the engineer on call for storage, unless an override was made."""
    path = "/api/v1/schedules/storage-on-call/overrides"
    if not person.get(path)["results"]:
        ends = (now + OVERRIDE_LASTS).isoformat()
        person.post(path, {"person": STORAGE_LEAD, "ends_at": ends, "reason": "On site, replacing disks"})


def rotations(now: datetime) -> list[Json]:
    """On-call schedules in which the engineers have the turn that `now` is in."""
    nine = datetime.combine(now.date(), time(9))
    day = nine if now.hour >= 9 else nine - timedelta(days=1)
    week = day - timedelta(days=day.weekday())
    return [
        _rotation("storage", "Storage on call", week, "1w", [STORAGE, STORAGE_LEAD]),
        _rotation("network", "Network on call", day, "1d", [NETWORK, NETWORK_LEAD]),
    ]


def _rotation(team: str, name: str, start: datetime, turn: str, people: list[str]) -> Json:
    layer = {"name": "turns", "people": people, "start": f"{start:%Y-%m-%dT%H:%M}", "turn": turn}
    return {"slug": f"{team}-on-call", "name": name, "team": team, "time_zone": "UTC", "layers": [layer]}


def policies() -> list[Json]:
    """Escalation policies: the rotation at once, then the lead, then the whole team."""
    return [
        {
            "slug": team,
            "name": f"{team.capitalize()}: on call, lead, team",
            "team": team,
            "repeats": 1,
            "steps": [
                {"after": 0, "actions": [{"schedule": f"{rotation}-on-call"}]},
                {"after": 300, "actions": [{"person": f"{rotation}-lead"}]},
                {"after": 900, "actions": [{"team": team}]},
            ],
        }
        for team, rotation in (
            ("storage", "storage"), ("services", "storage"), ("network", "network"), ("compute", "network"),
        )
    ]  # fmt: skip


def _give_pager(admin: Sender, name: str, address: str, moved: bool) -> None:
    """A contact method, tested: one that never was counts as one that cannot be relied on."""
    path = f"/api/v1/users/{name}/contact_methods"
    present = PAGER in _names(admin, path, "name")
    if present and not moved:
        return
    if present:
        admin.patch(f"{path}/{PAGER}", {"address": address})
    else:
        admin.post(path, {"name": PAGER, "kind": "webhook", "address": address})
    admin.post(f"{path}/{PAGER}/test", {})


def _names(admin: Sender, path: str, field: str) -> set[str]:
    return {one[field] for one in admin.get(path)["results"]}
