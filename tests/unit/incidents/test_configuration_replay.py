"""Two configurations over the same incidents: calls, the right team, incidents missed, each with an interval."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID
from zoneinfo import ZoneInfo

import msgspec
import pytest

from incidents.domain.configuration_replay import (
    Compared,
    Configuration,
    PastIncident,
    RecordedPast,
    calls_of,
    calls_of_findings,
    compare,
    mean,
    with_silence,
)
from incidents.domain.escalation.policy import Action, Policy, policy_from
from incidents.domain.incident.alerts import STORM_INCIDENTS, Reported
from incidents.domain.oncall.rotations import Rotation, Schedule, begun_before
from incidents.domain.past_placement import PastAlert
from incidents.domain.routing.rules import EACH_ALONE, Grouping, RoutingTable, Subject, Team
from incidents.domain.routing.rules import Rule as Route
from incidents.domain.suppression.past import Firing, Suppressions
from incidents.domain.suppression.recurrence import Times
from incidents.domain.suppression.rules import Matcher, Rule, Silence, Window

NOW = datetime(2026, 11, 21, 10, tzinfo=UTC)
MINUTE = timedelta(minutes=1)
HOUR = timedelta(hours=1)


def policy(*after: int, repeats: int = 0, call: dict[str, str] | None = None) -> Policy:
    actions = [call or {"person": "alice"}, {"channel": "ops"}]
    steps = [{"after": one, "actions": actions} for one in after]
    return policy_from({"slug": "p", "name": "P", "steps": steps, "repeats": repeats, "repeat_after": 300})


def configuration(team: str = "network", steps: tuple[int, ...] = (0, 300)) -> Configuration:
    table = RoutingTable(rules=(), default=Team(team, team.title()), services={})
    return Configuration(table, {"p": policy(*steps)}, {"network": "p", "storage": "p"})


def silenced(name: str) -> Configuration:
    silence = Silence("1", (Matcher("alertname", name),), NOW, NOW + HOUR, "alice", "")
    return with_silence(configuration(), silence)


def under(suppressions: Suppressions) -> Configuration:
    return replace(configuration(), suppressions=suppressions)


def firing(name: str, start: datetime = NOW, end: datetime | None = None) -> Firing:
    labels = {"alertname": name}
    return Firing(name, "host/1", labels, labels, start, end)


def incident(
    number: int, name: str = "DiskSlow", team: str | None = "network", **more: object
) -> PastIncident:
    """Of an alert of its own group."""
    alerts = [unplaced(name, group=f"{name} {number}")]
    made = PastIncident(number, "t", NOW, Subject(severity="error"), alerts, 60.0, team, None)
    return replace(made, **more)  # type: ignore[arg-type]


def recorded(
    incidents: Sequence[PastIncident], alone: Sequence[PastAlert] = (), earlier: Sequence[Firing] = ()
) -> RecordedPast:
    of_incidents = [alert.firing for one in incidents for alert in one.alerts]
    return RecordedPast(incidents, alone, [*of_incidents, *(one.firing for one in alone), *earlier])


def unplaced(
    name: str, start: datetime = NOW, end: datetime | None = None, group: str | None = None
) -> PastAlert:
    labels = {"alertname": name}
    reported = Reported(
        alert=f"{name}{start}",
        integration="prometheus",
        key=name,
        change="fired",
        status="firing",
        title=name,
        severity="error",
        group=group or name,
        component="host/1",
        text="",
        labels=labels,
        links=(),
        fired=1,
    )
    return PastAlert(reported, reported.subject(start), firing(name, start, end))


def alice(action: Action, _: float) -> Sequence[str]:
    return ("alice",) if action.kind == "person" else ()


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
    assert calls_of(policy(*steps, repeats=repeats), answered, alice).total() == calls


def test_a_configuration_that_is_the_same_changes_nothing() -> None:
    found = compare(recorded([incident(n) for n in range(20)]), configuration(), configuration())
    assert (found.calls_before, found.more, found.fewer, found.missed) == (20, 0, 0, 0)
    assert (found.net.low, found.net.high, found.minutes.value) == (0, 0, 0)


def test_a_silence_that_holds_real_incidents_misses_them() -> None:
    past = [
        incident(n, "DiskSlow" if n < 3 else "LinkDown", None if n == 0 else "network") for n in range(10)
    ]
    found = compare(recorded(past), configuration(), silenced("DiskSlow"))
    assert (found.fewer, found.more, found.missed, found.real) == (3, 0, 2, 9)
    assert [one.number for one in found.examples["missed"]] == [1, 2]
    assert found.net.low < found.net.value == -3 < found.net.high


def test_a_route_to_the_right_team_saves_the_time_that_it_took() -> None:
    slow = [incident(n, team="storage", seconds_to_team=1200.0) for n in range(5)]
    found = compare(recorded(slow), configuration("network"), configuration("storage"))
    assert (found.earlier, found.later, found.minutes.value) == (5, 0, -20)
    quick = [incident(9, team="network", seconds_to_team=0.0)]
    found = compare(recorded([*slow, *quick]), configuration("network"), configuration("storage"))
    assert (found.earlier, found.later) == (5, 1)
    assert found.minutes.low < found.minutes.value < found.minutes.high


def test_an_interval_holds_the_mean_and_narrows_with_more_incidents() -> None:
    few, many = mean([0.0, 1.0] * 5), mean([0.0, 1.0] * 500)
    assert few.low < 0.5 < few.high
    assert many.high - many.low < few.high - few.low
    assert mean([0.0, 1.0] * 5) == few


# Suppression
# ----------------------------------------------------------------------------------------------------------
def window(begin: datetime, end: datetime) -> Window:
    return Window("1", "work", "", ("host/*",), (), Times(begin, end), "hold")


INHIBITION = Rule(
    UUID(int=1), "node", (Matcher("alertname", "NodeDown"),), (Matcher("alertname", "DiskSlow"),)
)


def both(past: Sequence[PastIncident], suppressions: Suppressions) -> Compared:
    return compare(recorded(past), configuration(), under(suppressions))


def test_a_window_delays_an_alert_that_fires_longer_and_drops_one_that_does_not() -> None:
    held = Suppressions(windows=(window(NOW - HOUR, NOW + 20 * MINUTE),))
    found = both([incident(1), incident(2, alerts=[unplaced("DiskSlow", end=NOW + 5 * MINUTE)])], held)
    assert (found.calls_before, found.calls_after, found.missed, found.never) == (2, 1, 1, 1)
    assert (found.later, found.known_team, found.minutes.value) == (1, 1, 20)


def test_an_inhibition_holds_targets_while_a_source_fires() -> None:
    node = incident(1, alerts=[unplaced("NodeDown", NOW - MINUTE, NOW + 10 * MINUTE)])
    past = [node, incident(2), incident(3, alerts=[unplaced("DiskSlow", NOW - HOUR)])]
    found = both(past, Suppressions(inhibitions=(INHIBITION,)))
    assert (found.later, found.missed) == (1, 0)
    assert found.minutes.value == pytest.approx(10 / 3)
    short = incident(2, alerts=[unplaced("DiskSlow", end=NOW + MINUTE)])
    found = both([node, short], Suppressions(inhibitions=(INHIBITION,)))
    assert [one.number for one in found.examples["missed"]] == [2]


def test_a_removed_rule_lets_alerts_open_one_incident_of_their_group() -> None:
    node = unplaced("NodeDown", NOW - MINUTE, NOW + HOUR)
    disks = [unplaced("DiskSlow", NOW + at * MINUTE, NOW + 50 * MINUTE) for at in range(3)]
    again = unplaced("DiskSlow", NOW + 55 * MINUTE, NOW + 56 * MINUTE)
    with_rule = under(Suppressions(inhibitions=(INHIBITION,)))
    found = compare(recorded([], [node, *disks, again]), with_rule, configuration())
    assert (found.incidents, found.anew, found.calls_before) == (2, 2, 0)
    assert found.calls_after == 3, "until its end: two steps in 50 minutes, one in the last minute"


def test_an_alert_that_both_configurations_hold_counts_for_neither() -> None:
    with_rule = under(Suppressions(inhibitions=(INHIBITION,)))
    node, disk = unplaced("NodeDown", NOW, NOW + HOUR), unplaced("DiskSlow", NOW + MINUTE, NOW + 2 * MINUTE)
    assert compare(recorded([], [node, disk]), with_rule, with_rule).incidents == 0


# On call
# ----------------------------------------------------------------------------------------------------------
def on_call(*people: str, start: str = "2026-01-05T09:00", **members: Sequence[str]) -> Configuration:
    rotation = Rotation("r", people, datetime.fromisoformat(start), ZoneInfo("UTC"), timedelta(weeks=1))
    calling = policy(0, call={"team": "network"} if members else {"schedule": "primary"})
    rotas = {"primary": begun_before(Schedule((rotation,)), NOW - 30 * timedelta(days=1))} if people else {}
    return replace(configuration(), policies={"p": calling}, rotas=rotas, members=members)


def test_calls_of_a_schedule_go_to_whose_turn_it_is() -> None:
    past = [incident(n, opened_at=NOW - n * timedelta(weeks=1), alerts=[]) for n in range(4)]
    found = compare(recorded(past), on_call("alice"), on_call("alice", "bob"))
    assert found.people == {"alice": (4, 2), "bob": (0, 2)}
    assert found.net.value == 0


def test_a_removed_rota_calls_nobody() -> None:
    found = compare(recorded([incident(1)]), on_call("alice"), on_call())
    assert (found.calls_before, found.calls_after, found.missed) == (1, 0, 1)


def test_a_rotation_that_is_to_begin_turned_in_the_past_too() -> None:
    past = [incident(n, opened_at=NOW - n * timedelta(weeks=1), alerts=[]) for n in range(4)]
    found = compare(recorded(past), on_call("alice"), on_call("alice", "bob", start="2026-11-30T09:00"))
    assert found.people == {"alice": (4, 2), "bob": (0, 2)}


def test_every_member_of_a_team_is_called() -> None:
    found = compare(recorded([incident(1)]), on_call("alice"), on_call(network=("alice", "bob", "charlie")))
    assert (found.calls_before, found.calls_after) == (1, 3)


def test_people_without_an_account_are_not_called() -> None:
    left = replace(configuration(), people=frozenset({"bob"}))
    assert compare(recorded([incident(1)]), configuration(), left).missed == 1


def test_a_finding_calls_by_the_policy_of_the_team_that_it_is_routed_to() -> None:
    calls = calls_of_findings(configuration(steps=(0, 300)), 400.0)
    assert calls(Subject(component="host/1", analyzer="deepview", severity="error"), NOW) == 2


def test_an_alert_that_fires_since_before_the_span_inhibits_others() -> None:
    after = under(Suppressions(inhibitions=(INHIBITION,)))
    for end, openings in ((None, 1), (NOW + HOUR, 1), (NOW, 0)):
        source = firing("NodeDown", NOW - HOUR, end)
        past = [incident(1, alerts=[unplaced("DiskSlow", NOW, NOW + MINUTE)])]
        found = compare(recorded(past, earlier=[source]), configuration(), after)
        assert (found.never, found.fewer, found.incidents) == (openings, openings, 1)


# Grouping and storms
# ----------------------------------------------------------------------------------------------------------
def grouped(*by: str) -> Configuration:
    """A route for all alerts that groups by labels."""
    known = configuration()
    return replace(known, table=replace(known.table, rules=(Route("all", grouping=Grouping(by)),)))


def storm(size: int = 3 * STORM_INCIDENTS // 2) -> list[PastIncident]:
    """A storm as it is recorded: an incident for each of the first alerts, and one for the rest. INHIBITION mutes the
    first half.
    """
    alerts = [
        unplaced(
            "DiskSlow" if n < size // 2 else "LinkDown",
            NOW + n * timedelta(seconds=1),
            NOW + HOUR,
            f"rule {n}",
        )
        for n in range(size)
    ]
    alone = [incident(n, alerts=[one], team=None) for n, one in enumerate(alerts[:STORM_INCIDENTS])]
    return [*alone, incident(STORM_INCIDENTS, alerts=alerts[STORM_INCIDENTS:], team=None, opened_at=NOW)]


def test_a_storm_under_the_same_configuration_calls_as_it_did() -> None:
    found = compare(recorded(storm()), configuration(), configuration())
    assert (found.incidents, found.calls_before) == (STORM_INCIDENTS + 1, STORM_INCIDENTS + 1)
    assert (found.never, found.anew, found.more, found.fewer, found.net.value) == (0, 0, 0, 0, 0)


def test_alerts_that_are_too_few_for_a_storm_without_the_muted_ones_open_incidents_each() -> None:
    node = incident(-1, "NodeDown", alerts=[unplaced("NodeDown", NOW - HOUR, NOW + 2 * HOUR)])
    found = compare(
        recorded([node, *storm()]), configuration(), under(Suppressions(inhibitions=(INHIBITION,)))
    )
    muted = rest = 3 * STORM_INCIDENTS // 4
    assert (found.calls_before, found.calls_after) == (1 + STORM_INCIDENTS + 1, 1 + rest)
    assert found.never == muted
    assert found.anew == rest - (STORM_INCIDENTS - muted) - 1


def test_a_route_that_groups_a_storm_by_a_label_opens_one_incident_for_each_value() -> None:
    found = compare(recorded(storm()), configuration(), grouped("alertname"))
    assert (found.calls_before, found.calls_after, found.never) == (
        STORM_INCIDENTS + 1,
        2,
        STORM_INCIDENTS - 1,
    )


def test_a_route_that_lets_each_alert_stand_alone_ends_in_a_storm() -> None:
    alerts = [unplaced("DiskSlow", NOW + n * timedelta(seconds=1)) for n in range(2 * STORM_INCIDENTS)]
    for n, one in enumerate(alerts):
        alerts[n] = replace(one, reported=msgspec.structs.replace(one.reported, key=str(n)))
    found = compare(recorded([incident(1, alerts=alerts)]), configuration(), grouped(*EACH_ALONE))
    assert (found.calls_before, found.calls_after, found.anew) == (1, STORM_INCIDENTS + 1, STORM_INCIDENTS)


def test_an_incident_whose_alerts_join_one_that_calls_is_not_missed() -> None:
    first, second = incident(1, "DiskSlow"), incident(2, "LinkDown")
    found = compare(recorded([first, second]), configuration(), grouped())
    assert (found.calls_after, found.never) == (1, 1)
    assert (found.missed, found.real, found.known_team) == (0, 2, 2)


def test_an_incident_that_was_open_before_the_past_takes_alerts_and_counts_what_else_they_open() -> None:
    alerts = [
        unplaced("DiskSlow", NOW - HOUR, group="Disk"),
        unplaced("LinkDown", NOW + MINUTE, group="Disk"),
    ]
    past = recorded([incident(1, alerts=alerts, opened_at=NOW - HOUR, since=NOW)])
    same = compare(past, configuration(), configuration())
    assert (same.incidents, same.calls_before, same.real) == (0, 0, 0)
    split = compare(past, configuration(), grouped("alertname"))
    assert (split.incidents, split.anew, split.calls_before, split.calls_after) == (1, 1, 0, 1)
    assert [one.number for one in split.examples["opened_anew"]] == [1]


def test_an_alert_after_the_end_of_an_incident_opens_another_one() -> None:
    past = [
        incident(1, alerts=[unplaced("DiskSlow")], closed_at=NOW + MINUTE),
        incident(2, alerts=[unplaced("DiskSlow", NOW + 2 * MINUTE)]),
    ]
    assert compare(recorded(past), configuration(), configuration()).calls_before == 2


def test_a_symptom_stays_with_its_cause_however_alerts_are_grouped() -> None:
    joined = replace(unplaced("LinkDown", NOW + MINUTE, group="Link"), symptom=True)
    found = compare(
        recorded([incident(1, alerts=[unplaced("DiskSlow"), joined])]), configuration(), grouped("alertname")
    )
    assert (found.calls_before, found.calls_after, found.anew) == (1, 1, 0)


def test_only_the_chosen_incidents_are_counted() -> None:
    found = compare(recorded(storm()), configuration(), silenced("DiskSlow"), {0, STORM_INCIDENTS})
    assert (found.incidents, found.calls_before) == (2, 2)
