"""Steps of an escalation policy as people type them: one step a line.

    at once: schedule storage-primary
    after 5 min: person bob, channel storage-chat
    after 15 min: team storage, owner, severity critical, bridge https://meet.example/dossier-{number}

Read here, checked by `policies.policy_from`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any, Final

from incidents.domain.escalation.policy import KINDS, Step
from incidents.domain.values import InvalidValueError

AT_ONCE: Final = "at once"
_UNITS: Final = {"s": 1, "min": 60, "h": 3600, "d": 86_400}
_SPAN = re.compile(r"([0-9]{1,7})\s*(s|min|h|d)\b")
# A comma inside an address is part of it.
_BETWEEN = re.compile(rf",\s*(?=(?:{'|'.join(KINDS)})\b)")
LONGEST_TEXT: Final = 20_000


def read_steps(text: str) -> list[dict[str, Any]]:
    """The steps of a text, as `policies.steps_from` takes them. Raises InvalidValueError, which names the line."""
    if len(text) > LONGEST_TEXT:
        raise InvalidValueError("steps", f"must have at most {LONGEST_TEXT} characters")
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), start=1)]
    return [_step(number, line) for number, line in lines if line]


def write_steps(steps: Iterable[Step]) -> str:
    """`read_steps` of it gives the same steps."""
    return "\n".join(f"{_when(step.after)}: {_actions(step)}" for step in steps)


def _step(number: int, line: str) -> dict[str, Any]:
    when, colon, actions = line.partition(":")
    if not colon:
        raise InvalidValueError("steps", f"line {number} must be such as “after 5 min: person bob”")
    entries = [_action(number, part) for part in _BETWEEN.split(actions.strip()) if part.strip()]
    return {"after": _seconds(number, when.strip().lower()), "actions": entries}


def _seconds(number: int, when: str) -> int:
    if when == AT_ONCE:
        return 0
    span = when.removeprefix("after").strip()
    parts = _SPAN.findall(span)
    if not when.startswith("after") or not parts or _SPAN.sub("", span).strip():
        raise InvalidValueError(
            "steps", f"line {number} must begin with “{AT_ONCE}:” or with, say, “after 5 min:”"
        )
    return sum(int(count) * _UNITS[unit] for count, unit in parts)


def _action(number: int, text: str) -> dict[str, Any]:
    kind, _, value = text.strip().partition(" ")
    if kind not in KINDS:
        raise InvalidValueError(
            "steps", f"line {number}: “{kind[:40]}” is not an action; use {', '.join(KINDS)}"
        )
    if kind == "owner":
        if value.strip():
            raise InvalidValueError("steps", f"line {number}: “owner” takes no name")
        return {"owner": True}
    if not value.strip():
        raise InvalidValueError("steps", f"line {number}: {kind} needs a name after it")
    return {kind: value.strip()}


def _when(seconds: int) -> str:
    return f"after {write_span(seconds)}" if seconds else AT_ONCE


def write_span(seconds: int) -> str:
    """`1 h 30 min`: nothing of it is left out, so that it is read as it was."""
    parts = []
    for unit in ("d", "h", "min", "s"):
        count, seconds = divmod(seconds, _UNITS[unit])
        parts += [f"{count} {unit}"] if count else []
    return " ".join(parts)


def _actions(step: Step) -> str:
    return ", ".join(one.kind if one.kind == "owner" else f"{one.kind} {one.value}" for one in step.actions)
