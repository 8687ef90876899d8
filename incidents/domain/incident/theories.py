"""Theories of an incident: the event that keeps one with its result. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from incidents.domain.incident.state import Bodies, Incident

CHECKED: Final = "incident.theory_checked"


@dataclass(frozen=True, slots=True)
class RecordTheory:
    """`hops` have been judged by the caller; `rests_on` says what they were judged by."""

    id: str
    verdict: str
    hops: Sequence[Mapping[str, Any]]
    note: str
    rests_on: Mapping[str, Any]


def record_theory(_: Incident, command: RecordTheory) -> Bodies:
    """A resolved incident takes theories, too: its review is written afterwards."""
    body = {
        "theory": command.id,
        "verdict": command.verdict,
        "hops": [dict(one) for one in command.hops],
        "note": command.note,
        **command.rests_on,
    }
    return [(CHECKED, body)]


def checked_sentence(name: str, body: Mapping[str, Any]) -> str:
    path = " -> ".join([body["hops"][0]["cause"], *(one["effect"] for one in body["hops"])])
    note = f". {body['note']}" if body["note"] else ""
    return f"{name} checked the theory {path}: {body['verdict']}{note}"
