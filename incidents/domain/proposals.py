"""A proposal: an action on an incident that waits for a person to accept or decline it. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Literal

from incidents.domain.values import parse_rfc3339, rfc3339

Action = Literal["hand_over", "silence"]


@dataclass(frozen=True, slots=True)
class Proposal:
    """`team` is of a hand-over, `matchers` (as JSON) and `minutes` are of a silence. `cites` names runs and log
    positions that the reason rests on."""

    id: str
    action: Action
    reason: str
    by: str
    at: datetime
    team: str | None = None
    matchers: tuple[Mapping[str, Any], ...] = ()
    minutes: int | None = None
    cites: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        return action_text(self.action, self.team, self.matchers, self.minutes)

    def same_as(self, other: Proposal) -> bool:
        """Whether both ask for the same, whoever asks and why."""
        return (self.action, self.team, self.matchers, self.minutes) == (
            other.action,
            other.team,
            other.matchers,
            other.minutes,
        )

    def as_json(self) -> dict[str, Any]:
        values = {**asdict(self), "matchers": list(self.matchers), "cites": list(self.cites)}
        return {**values, "at": rfc3339(self.at), "text": self.text}


def proposal_from(body: Mapping[str, Any]) -> Proposal:
    """Reads `Proposal.as_json`."""
    values = {name: body[name] for name in Proposal.__slots__}
    lists = {name: tuple(body[name]) for name in ("matchers", "cites")}
    return Proposal(**{**values, **lists, "at": parse_rfc3339(body["at"])})


def action_text(
    action: str, team: str | None, matchers: Sequence[Mapping[str, Any]], minutes: int | None
) -> str:
    """`hand over to storage`, `silence disk="sda" for 120 min`."""
    if action == "hand_over":
        return f"hand over to {team}"
    return f"silence {', '.join(map(_matcher_text, matchers))} for {minutes} min"


def _matcher_text(one: Mapping[str, Any]) -> str:
    operator = ("=~" if one["isRegex"] else "=") if one["isEqual"] else ("!~" if one["isRegex"] else "!=")
    return f"{one['name']}{operator}{json.dumps(one['value'], ensure_ascii=False)}"
