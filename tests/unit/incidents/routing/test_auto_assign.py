"""Conditions under which an incident goes by itself to the team that is suggested for it."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from incidents.domain.incident import commands as c
from incidents.domain.incident.auto_assign import Suggested, heeded
from incidents.domain.incident.decide import decide
from incidents.domain.incident.state import Incident
from tests.unit.incidents.incident.cases import NOON, Recorded, after, finding, opened

TEAMS = ("network", "storage")
NETWORK = Suggested("network", 0.84, 60, 52)
Step = tuple[c.Command, str]


def heed(*steps: Step, suggested: Suggested = NETWORK) -> c.HandOver | None:
    """Of an incident that Alice reported and storage got, after commands by their actors."""
    state, past = _told([(opened(), "user:alice"), *steps])
    return heeded(state, past, suggested, "disks", TEAMS)


def _told(steps: Sequence[Step]) -> tuple[Incident, list[Recorded]]:
    state: Incident | None = None
    past: list[Recorded] = []
    for command, actor in steps:
        past += [Recorded(one.type, one.body, actor, NOON) for one in decide(state, command, NOON)]
        state = after(command, state=state, actor=actor)
    assert state is not None
    return state, past


def test_an_untouched_ticket_goes_to_the_suggested_team_which_reads_why() -> None:
    assert heed() == c.HandOver(
        "network",
        "predicted with 84 % from similar resolved incidents; 52 of the last 60 predictions for it were right;"
        " the route `disks` has auto-assign",
    )


def test_what_nobody_knows_the_record_of_boasts_of_none() -> None:
    told = heed(suggested=Suggested("network", 0.84, 0, 0))
    assert told is not None
    assert "of its last" not in told.reason


@pytest.mark.parametrize("team", ["storage", "removed-since"])
def test_a_ticket_that_is_there_or_cannot_go_there_stays(team: str) -> None:
    assert heed(suggested=Suggested(team, 0.84, 60, 52)) is None


@pytest.mark.parametrize(
    "steps",
    [
        [(c.Acknowledge(), "user:bob")],
        [(c.Acknowledge(), "user:bob"), (c.Unacknowledge(), "user:bob")],
        [(c.Assign("bob"), "key:bot")],
        [(c.Comment("mine"), "user:bob")],
        [(c.SetSeverity("critical"), "user:bob")],
        [(c.HandOver("network", "theirs"), "user:bob"), (c.Bounce("not ours"), "user:bob")],
        [(c.HandOver("network", "theirs"), "user:bob"), (c.Undo(), "user:bob")],
        [(c.Resolve("none"), "user:bob"), (c.Reopen(), "user:bob")],
    ],
)
def test_a_ticket_that_somebody_did_anything_to_is_left_to_people(steps: list[Step]) -> None:
    assert heed(*steps) is None


def test_what_machines_say_of_a_ticket_keeps_it_from_nobody() -> None:
    said: list[Step] = [
        (c.JoinFinding(finding()), "system:incidents"),
        (c.Join(c.Report("Switch fails", severity="critical")), "key:prometheus"),
        (c.Comment("a runbook"), "key:bot"),
    ]
    assert heed(*said) is not None
