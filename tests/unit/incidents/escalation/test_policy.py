"""Escalation policies: what is refused, by the path of the field."""

from __future__ import annotations

from typing import Any

import pytest

from incidents.domain.escalation.policy import frozen_policy, policy_from, spoken
from incidents.domain.values import InvalidValueError
from tests.unit.incidents.escalation.cases import ALICE_THEN_BOB, policy

EVERYTHING = [
    {
        "after": 0,
        "actions": [
            {"schedule": "storage-primary"},
            {"team": "storage"},
            {"owner": True},
            {"channel": "pager"},
        ],
    },
    {"after": 60, "actions": [{"severity": "critical"}, {"bridge": "https://meet.example/{number}"}]},
]


def step(*actions: Any, **fields: Any) -> list[Any]:
    return [{"actions": list(actions), **fields}]


def test_a_policy_is_read_back_as_it_was_written() -> None:
    one = policy(steps=EVERYTHING)
    assert policy_from(one.as_json()) == one == frozen_policy(one.as_json())


def test_a_frozen_policy_is_read_whatever_is_allowed_now() -> None:
    body = {**policy().as_json(), "repeats": 10**6}
    assert frozen_policy(body).repeats == 10**6


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        ({"steps": None}, "steps"),
        ({"steps": []}, "steps"),
        ({"steps": step({"person": "alice"}) * 21}, "steps"),
        ({"steps": ["alice"]}, "steps[0]"),
        ({"steps": step({"person": "alice"}, wait=3)}, "steps[0].wait"),
        ({"steps": step()}, "steps[0].actions"),
        ({"steps": step({"person": "alice"}, after=-1)}, "steps[0].after"),
        ({"steps": step({"person": "alice"}, after=True)}, "steps[0].after"),
        ({"steps": step({"person": "alice"}, after=1.5)}, "steps[0].after"),
        ({"steps": step({"person": "alice"}, after=10**9)}, "steps[0].after"),
        ({"steps": step({"person": "alice", "team": "x"})}, "steps[0].actions[0]"),
        ({"steps": step({"pigeon": "alice"})}, "steps[0].actions[0].pigeon"),
        ({"steps": step({"person": "a\x00b"})}, "steps[0].actions[0].person"),
        ({"steps": step({"person": 7})}, "steps[0].actions[0].person"),
        ({"steps": step({"owner": "alice"})}, "steps[0].actions[0].owner"),
        ({"steps": step({"owner": True}, {"severity": "awful"})}, "steps[0].actions[1].severity"),
        ({"steps": step({"owner": True}, {"bridge": "javascript:alert(1)"})}, "steps[0].actions[1].bridge"),
        ({"repeats": 21}, "repeats"),
        ({"repeat_after": 0}, "repeat_after"),
        ({"acknowledgement_timeout": 59}, "acknowledgement_timeout"),
        ({"restart_when_worse": "yes"}, "restart_when_worse"),
        ({"name": ""}, "name"),
    ],
)
def test_what_is_wrong_is_named_by_its_path(fields: dict[str, Any], path: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        policy_from({**ALICE_THEN_BOB, **fields})
    assert refused.value.field == path


def test_a_policy_that_tells_nobody_is_refused() -> None:
    with pytest.raises(InvalidValueError, match="at least one action must notify someone"):
        policy(steps=step({"severity": "critical"}))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0, "0 s"), (59, "59 s"), (60, "1 min"), (5400, "1 h 30 min"), (90_000, "1 d 1 h"), (-5, "0 s")],
)
def test_a_span_is_told_as_people_say_it(seconds: float, words: str) -> None:
    assert spoken(seconds) == words
