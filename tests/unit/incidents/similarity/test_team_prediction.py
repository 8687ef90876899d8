"""A team is suggested where the past says so, with how often that was right; else nothing is."""

from __future__ import annotations

import random

import numpy as np
import pytest

from incidents.domain.similarity.text import Described
from incidents.similarity.team_prediction import CALIBRATES, LEARNS, THRESHOLD, Suggesting

pytestmark = pytest.mark.simulated

KINDS = {"network": "tor", "storage": "storage_cluster", "compute": "host"}


def past(count: int, noise: float = 0.0, seed: int = 1) -> tuple[list[Described], list[str]]:
    """Incidents on components of three kinds, each resolved by the kind's team or, by `noise`, by any."""
    draw = random.Random(seed)
    tickets, teams = [], []
    for _ in range(count):
        team = draw.choice(sorted(KINDS))
        name = f"{KINDS[team]}/{draw.randint(1, 40)}"
        tickets.append(Described(f"{name} fails", name, {"rack": f"r{draw.randint(1, 9)}"}))
        teams.append(draw.choice(sorted(KINDS)) if draw.random() < noise else team)
    return tickets, teams


SWITCH = Described("tor/99 fails", "tor/99")


def test_the_team_that_resolves_such_tickets_is_suggested() -> None:
    said = Suggesting(*past(300)).suggest(SWITCH)
    assert said.team == "network"
    assert said.probability is not None
    assert said.probability > 0.9


def test_its_record_is_of_tickets_that_it_had_not_seen() -> None:
    record = Suggesting(*past(300)).suggest(SWITCH).record
    assert 0 < record.judged <= 300 - LEARNS - CALIBRATES
    assert record.right <= record.suggested <= record.judged
    assert record.right > 0.95 * record.suggested


def test_nothing_is_suggested_where_teams_are_drawn_by_lot() -> None:
    said = Suggesting(*past(400, noise=1.0)).suggest(SWITCH)
    assert said.team is None
    assert "is not suggested" in said.why


def test_nothing_is_suggested_from_a_short_past() -> None:
    said = Suggesting(*past(LEARNS + CALIBRATES - 1)).suggest(SWITCH)
    assert (said.team, said.probability) == (None, None)
    assert "too little to learn from" in said.why


def test_nothing_is_suggested_where_one_team_resolves_everything() -> None:
    tickets, _ = past(200)
    assert Suggesting(tickets, ["network"] * 200).suggest(SWITCH).why == "one team resolved everything so far"


def test_nothing_is_suggested_for_what_was_never_seen() -> None:
    said = Suggesting(*past(300)).suggest(Described("ΩΩΩ", "laser/7"))
    assert (said.team, said.why) == (None, "no resolved incident shares a word with this one")


def test_the_confirmed_cause_is_not_looked_at() -> None:
    tickets, teams = past(300)
    told = [Described(one.title, one.component, one.labels, "host/1") for one in tickets]
    assert Suggesting(told, teams).suggest(SWITCH) == Suggesting(tickets, teams).suggest(SWITCH)


@pytest.mark.parametrize("noise", [0.1, 0.3])
def test_a_probability_means_what_it_says(noise: float) -> None:
    model = Suggesting(*past(1_000, noise))
    tickets, teams = past(500, noise, seed=2)
    said = [model.suggest(one) for one in tickets]
    right = np.array([one.team == team for one, team in zip(said, teams, strict=True) if one.team])
    told = np.array([one.probability for one in said if one.team])
    assert len(right) > 300
    assert abs(told.mean() - right.mean()) < 0.06
    assert told.min() >= THRESHOLD


def test_the_same_past_suggests_the_same() -> None:
    assert Suggesting(*past(300, 0.2)).suggest(SWITCH) == Suggesting(*past(300, 0.2)).suggest(SWITCH)
