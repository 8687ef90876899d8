"""An incident's state as a row and back: `state_of(fields_of(state)) == state`."""

from __future__ import annotations

from dataclasses import asdict, fields
from typing import Any

from incidents.domain.incident.failure import is_quiet
from incidents.domain.incident.opinions import opinion_from
from incidents.domain.incident.state import HandedOver, Incident, Merged, Overridden, Shown
from incidents.domain.time import optional_rfc3339, optional_time, parse_rfc3339, rfc3339
from incidents.domain.values import SEVERITIES
from incidents.incident.models import IncidentRow

_TUPLES = ("ambiguous_with", "links", "blamed_by")


def fields_of(state: Incident) -> dict[str, Any]:
    """The columns of `IncidentRow` but `version` and `position`."""
    columns = {field.name: getattr(state, field.name) for field in fields(Incident)}
    for name in _TUPLES:
        columns[name] = list(columns[name])
    columns["shown"] = {
        analyzer: {"score": shown.score, "window_end": rfc3339(shown.window_end)}
        for analyzer, shown in state.shown.items()
    }
    columns["known_until"] = {feed: rfc3339(at) for feed, at in state.known_until.items()}
    columns["overridden"] = [
        {**asdict(one), "starts_at": rfc3339(one.starts_at), "until": rfc3339(one.until)}
        for one in state.overridden
    ]
    columns["opinions"] = {name: one.as_json() for name, one in state.opinions.items()}
    columns["handed_over"] = None if state.handed_over is None else _hand_over_json(state.handed_over)
    columns["handed_from"] = state.handed_from
    columns["merged"] = {name: asdict(one) for name, one in state.merged.items()}
    columns["cause"] = sorted(state.covers)
    columns["severity_rank"] = SEVERITIES.index(state.severity)
    columns["quiet"] = is_quiet(state)
    return columns


def state_of(row: IncidentRow) -> Incident:
    values = {field.name: getattr(row, field.name) for field in fields(Incident)}
    for name in _TUPLES:
        values[name] = tuple(values[name])
    values["id"] = str(row.id)
    values["shown"] = {
        analyzer: Shown(shown["score"], parse_rfc3339(shown["window_end"]))
        for analyzer, shown in row.shown.items()
    }
    values["known_until"] = {feed: parse_rfc3339(at) for feed, at in row.known_until.items()}
    values["overridden"] = tuple(overridden_from(one) for one in row.overridden)
    values["opinions"] = {name: opinion_from(one) for name, one in row.opinions.items()}
    values["merged"] = {
        name: Merged(**{**one, "cause": tuple(one["cause"])}) for name, one in row.merged.items()
    }
    values["merged_into"] = None if row.merged_into is None else str(row.merged_into)
    values["silence"] = None if row.silence is None else str(row.silence)
    values["handed_over"] = None if row.handed_over is None else _hand_over_from(row.handed_over)
    return Incident(**values)


def overridden_from(stored: dict[str, Any]) -> Overridden:
    times = {name: parse_rfc3339(stored[name]) for name in ("starts_at", "until")}
    return Overridden(**{**stored, **times})


_TIMES = ("at", "acknowledged_at", "team_since")


def _hand_over_json(sent: HandedOver) -> dict[str, Any]:
    return {**asdict(sent), **{name: optional_rfc3339(getattr(sent, name)) for name in _TIMES}}


def _hand_over_from(body: dict[str, Any]) -> HandedOver:
    return HandedOver(**{**body, **{name: optional_time(body[name]) for name in _TIMES}})
