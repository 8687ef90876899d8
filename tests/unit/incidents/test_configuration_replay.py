"""Two configurations over the same incidents: calls, the right team, incidents missed, each with an interval."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from incidents.domain.configuration_replay import Configuration, PastIncident, calls_of, compare, mean
from incidents.domain.escalation.policy import Policy, policy_from
from incidents.domain.routing.rules import RoutingTable, Subject, Team
from incidents.domain.suppression.rules import Matcher, Silence

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)


def policy(*after: int, repeats: int = 0) -> Policy:
    steps = [{"after": one, "actions": [{"person": "alice"}, {"channel": "ops"}]} for one in after]
    return policy_from({"slug": "p", "name": "P", "steps": steps, "repeats": repeats, "repeat_after": 300})


def configuration(
    team: str = "network", silence: str = "", steps: tuple[int, ...] = (0, 300)
) -> Configuration:
    matchers = (Matcher("alertname", silence),)
    held = Silence("1", matchers, NOW, NOW + timedelta(hours=1), "alice", "")
    table = RoutingTable(rules=(), default=Team(team, team.title()), services={})
    both = {"network": "p", "storage": "p"}
    return Configuration(table, {"p": policy(*steps)}, both, (held,) if silence else ())


def incident(
    number: int, name: str = "DiskSlow", team: str | None = "network", **more: object
) -> PastIncident:
    labels: tuple[Mapping[str, str], ...] = ({"alertname": name},)
    made = PastIncident(number, "t", NOW, Subject(severity="error"), labels, 60.0, team, None)
    return replace(made, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("steps", "repeats", "answered", "calls"),
    [
        ((0, 300), 0, 60.0, 1),
        ((0, 300), 0, 400.0, 2),
        ((0, 300), 0, None, 2),
        ((0, 300), 1, None, 4),
        ((0, 300), 1, 650.0, 3),
        ((120,), 0, 60.0, 0),
        ((0,), 0, 0.0, 1),
    ],
)
def test_a_policy_calls_until_somebody_answers(
    steps: tuple[int, ...], repeats: int, answered: float | None, calls: int
) -> None:
    assert calls_of(policy(*steps, repeats=repeats), answered) == calls


def test_a_configuration_that_is_the_same_changes_nothing() -> None:
    found = compare([incident(n) for n in range(20)], configuration(), configuration())
    assert (found.calls_before, found.more, found.fewer, found.missed) == (20, 0, 0, 0)
    assert (found.net.low, found.net.high, found.minutes.value) == (0, 0, 0)


def test_a_silence_that_holds_real_incidents_misses_them() -> None:
    past = [
        incident(n, "DiskSlow" if n < 3 else "LinkDown", None if n == 0 else "network") for n in range(10)
    ]
    found = compare(past, configuration(), configuration(silence="DiskSlow"))
    assert (found.fewer, found.more, found.missed, found.real) == (3, 0, 2, 9)
    assert [one.number for one in found.examples["missed"]] == [1, 2]
    assert found.net.low < found.net.value == -3 < found.net.high


def test_a_route_to_the_right_team_saves_the_time_that_it_took() -> None:
    slow = [incident(n, team="storage", seconds_to_team=1200.0) for n in range(5)]
    found = compare(slow, configuration("network"), configuration("storage"))
    assert (found.earlier, found.later, found.minutes.value) == (5, 0, -20)
    quick = [incident(9, team="network", seconds_to_team=0.0)]
    found = compare([*slow, *quick], configuration("network"), configuration("storage"))
    assert (found.earlier, found.later) == (5, 1)
    assert found.minutes.low < found.minutes.value < found.minutes.high


def test_an_interval_holds_the_mean_and_narrows_with_more_incidents() -> None:
    few, many = mean([0.0, 1.0] * 5), mean([0.0, 1.0] * 500)
    assert few.low < 0.5 < few.high
    assert many.high - many.low < few.high - few.low
    assert mean([0.0, 1.0] * 5) == few
