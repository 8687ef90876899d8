"""Steps of a policy as a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.escalation.policy import steps_from
from incidents.domain.escalation.policy_text import read_steps, write_steps
from incidents.domain.values import InvalidValueError

names = st.from_regex(r"[a-z][a-z0-9-]{0,8}", fullmatch=True)
actions = st.one_of(
    st.builds(lambda name: {"person": name}, names),
    st.builds(lambda name: {"schedule": name}, names),
    st.builds(lambda name: {"team": name}, names),
    st.builds(lambda name: {"channel": name}, names),
    st.just({"owner": True}),
    st.just({"severity": "critical"}),
    st.just({"bridge": "https://meet.example/a,b?n={number}"}),
)
steps = st.lists(
    st.fixed_dictionaries(
        {"after": st.integers(0, 604_800), "actions": st.lists(actions, min_size=1, max_size=4)}
    ),
    min_size=1,
    max_size=4,
).map(lambda made: [*made, {"after": 0, "actions": [{"person": "alice"}]}])


@given(steps)
def test_what_is_written_is_read_as_it_was(made: list[dict[str, object]]) -> None:
    known = steps_from(made)
    assert steps_from(read_steps(write_steps(known))) == known


def test_a_step_is_a_line() -> None:
    text = "At once: schedule primary\n\n after 1 h 30 min: person bob, owner\n"
    assert read_steps(text) == [
        {"after": 0, "actions": [{"schedule": "primary"}]},
        {"after": 5400, "actions": [{"person": "bob"}, {"owner": True}]},
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("person bob", "line 1 must be such as"),
        ("at once: owner\nsoon: person bob", "line 2 must begin with"),
        ("after five minutes: owner", "line 1 must begin with"),
        ("after 5 min or so: owner", "line 1 must begin with"),
        ("at once: pigeon bob", "line 1: “pigeon” is not an action"),
        ("at once: person", "line 1: person needs a name"),
        ("at once: owner alice", "line 1: “owner” takes no name"),
        ("x" * 20_001, "at most 20000 characters"),
    ],
)
def test_what_cannot_be_read_is_told_by_its_line(text: str, reason: str) -> None:
    with pytest.raises(InvalidValueError, match=reason):
        read_steps(text)
