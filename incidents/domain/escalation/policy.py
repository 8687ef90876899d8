"""Escalation policies: who is called for an incident that nobody answers, in which order and after how long.

A policy is steps; each has actions and is taken `after` so many seconds since the one before it (the first: since the
start). After the last step people have `repeat_after` seconds to answer; then the steps are taken again, `repeats`
times, and then it is recorded that nobody answered. An incident that was acknowledged and on which then nobody does
anything for `acknowledgement_timeout` seconds escalates again.

An action is an object with one name, that of what it does: `{"person": "alice"}`, `{"schedule": "storage-primary"}`,
`{"team": "storage"}` and `{"owner": true}` call people, `{"channel": "storage-chat"}` tells a shared channel, which may
be a webhook, `{"severity": "critical"}` makes the incident worse, `{"bridge": "https://meet.example/dossier-{number}"}`
links it to a call that people join.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, get_args

from incidents.domain.values import (
    InvalidValueError,
    check_line,
    check_link,
    check_list,
    check_object,
    check_severity,
    check_text,
    check_whole,
)

Kind = Literal["person", "schedule", "team", "owner", "channel", "severity", "bridge"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
CALLING: Final[frozenset[Kind]] = frozenset({"person", "schedule", "team", "owner", "channel"})
"""Actions that tell somebody; a policy without one would climb in silence."""

MOST_STEPS: Final = 20
MOST_ACTIONS: Final = 20
MOST_REPEATS: Final = 20
LONGEST: Final = 7 * 24 * 3600
"""Seconds: who is to be called later than in a week is not called."""
SHORTEST_WAIT: Final = 60
"""Seconds that people have to answer before a round begins anew, or before silence counts as forgotten."""
USUAL_WAIT: Final = 300


@dataclass(frozen=True, slots=True)
class Action:
    kind: Kind
    value: str
    """A user name, a slug, a severity or an address; empty for the owner."""

    def as_json(self) -> dict[str, Any]:
        return {self.kind: True if self.kind == "owner" else self.value}

    def __str__(self) -> str:
        """Name of the target on a timeline."""
        words = {"person": self.value, "owner": "its owner", "bridge": "a call to join"}
        return words.get(self.kind, f"{self.kind} {self.value}")


@dataclass(frozen=True, slots=True)
class Step:
    after: int
    """Seconds since the step before it."""
    actions: tuple[Action, ...]

    def as_json(self) -> dict[str, Any]:
        return {"after": self.after, "actions": [one.as_json() for one in self.actions]}


@dataclass(frozen=True, slots=True)
class Policy:
    slug: str
    name: str
    steps: tuple[Step, ...]
    repeats: int = 0
    """Number of repetitions of all steps."""
    repeat_after: int = USUAL_WAIT
    """Seconds after the last step until the next round, or until nobody has answered."""
    acknowledgement_timeout: int | None = None
    restart_when_worse: bool = False
    """Whether a severity that rises makes it begin anew."""

    @property
    def rounds(self) -> int:
        return self.repeats + 1

    def as_json(self) -> dict[str, Any]:
        return {
            "slug": self.slug,
            "name": self.name,
            "steps": [step.as_json() for step in self.steps],
            "repeats": self.repeats,
            "repeat_after": self.repeat_after,
            "acknowledgement_timeout": self.acknowledgement_timeout,
            "restart_when_worse": self.restart_when_worse,
        }


def policy_from(body: Mapping[str, Any]) -> Policy:
    """A policy as `as_json` writes it. Raises InvalidValueError with the path of the field that is wrong."""
    timeout = body.get("acknowledgement_timeout")
    restart = body.get("restart_when_worse", False)
    if not isinstance(restart, bool):
        raise InvalidValueError("restart_when_worse", "must be true or false")
    return Policy(
        slug=check_line("slug", body.get("slug"), 60),
        name=check_line("name", body.get("name"), 120),
        steps=steps_from(body.get("steps")),
        repeats=check_whole("repeats", body.get("repeats", 0), MOST_REPEATS),
        repeat_after=check_whole(
            "repeat_after", body.get("repeat_after", USUAL_WAIT), LONGEST, SHORTEST_WAIT
        ),
        acknowledgement_timeout=(
            None
            if timeout is None
            else check_whole("acknowledgement_timeout", timeout, LONGEST, SHORTEST_WAIT)
        ),
        restart_when_worse=restart,
    )


def steps_from(value: object) -> tuple[Step, ...]:
    """Raises InvalidValueError: at least one step, and at least one action that tells somebody."""
    steps = tuple(
        _step(f"steps[{i}]", one) for i, one in enumerate(check_list("steps", value, MOST_STEPS, 1))
    )
    if not any(action.kind in CALLING for step in steps for action in step.actions):
        raise InvalidValueError(
            "steps", f"at least one action must notify someone: {', '.join(sorted(CALLING))}"
        )
    return steps


def _step(field: str, value: object) -> Step:
    given = check_object(field, value, ("after", "actions"))
    actions = check_list(f"{field}.actions", given.get("actions"), MOST_ACTIONS, 1)
    return Step(
        check_whole(f"{field}.after", given.get("after", 0), LONGEST),
        tuple(_action(f"{field}.actions[{i}]", one) for i, one in enumerate(actions)),
    )


def _action(field: str, value: object) -> Action:
    if not isinstance(value, Mapping) or len(value) != 1:
        raise InvalidValueError(
            field, f'must be an object with one name: {", ".join(KINDS)}; such as {{"person": "alice"}}'
        )
    ((name, given),) = value.items()
    kind = next((one for one in KINDS if one == name), None)
    if kind is None:
        raise InvalidValueError(f"{field}.{str(name)[:60]}", f"is not an action; use {', '.join(KINDS)}")
    return Action(kind, _value(f"{field}.{kind}", kind, given))


def _value(field: str, kind: Kind, given: object) -> str:
    if kind == "owner":
        if given is not True:
            raise InvalidValueError(field, "must be true")
        return ""
    if kind == "severity":
        return check_severity(field, given)
    if kind == "bridge":
        return _address(field, given)
    return check_line(field, given, 150)


def _address(field: str, given: object) -> str:
    try:
        return check_link(field, {"href": given})["href"]
    except InvalidValueError as error:
        raise InvalidValueError(field, error.reason) from None


def check_reason(text: object) -> str:
    """Reason of a person for an escalation."""
    return check_text("reason", text, 2000, blank=False)


def frozen_policy(body: Mapping[str, Any]) -> Policy:
    """A policy as an event holds it, taken as it is: what was allowed then stays readable whatever is allowed now."""
    steps = tuple(
        Step(step["after"], tuple(_frozen_action(action) for action in step["actions"]))
        for step in body["steps"]
    )
    return Policy(**{**body, "steps": steps})


def _frozen_action(body: Mapping[str, Any]) -> Action:
    kind = next(one for one in KINDS if one in body)
    value = body[kind]
    return Action(kind, "" if value is True else value)


def spoken(seconds: float) -> str:
    """`45 s`, `4 min`, `1 h 30 min`, `3 d`: as people say how long."""
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    days, rest = divmod(whole, 86_400)
    hours, minutes = rest // 3600, rest % 3600 // 60
    parts = ((days, "d"), (hours, "h"), (minutes, "min"))
    return " ".join([f"{count} {unit}" for count, unit in parts if count][:2])
