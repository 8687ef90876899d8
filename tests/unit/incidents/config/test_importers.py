"""Configuration of other systems becomes ours: who is on call, who is paged when, and what is listed as left out."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from incidents.domain.importers.alertmanager import alertmanager
from incidents.domain.importers.draft import Draft, InvalidImportError, times
from incidents.domain.importers.grafana_oncall import grafana_oncall
from incidents.domain.importers.opsgenie import opsgenie
from incidents.domain.importers.pagerduty import pagerduty
from incidents.domain.oncall.layers import read_layers
from incidents.domain.oncall.rotations import Schedule, person_on_call
from incidents.domain.suppression.recurrence import recurrence_from, times_from

NOW = datetime(2026, 3, 2, tzinfo=UTC)
ALICE, BOB, CHARLIE = "alice@example.com", "bob@example.com", "charlie@example.com"


def on_call(draft: Draft, slug: str, *moments: str) -> list[str | None]:
    """People on call at local times of the schedule's zone."""
    (one,) = [item for item in draft.file()["schedules"] if item["slug"] == slug]
    zone = ZoneInfo(one["time_zone"])
    schedule = Schedule(read_layers(one["layers"], zone))
    return [person_on_call(schedule, datetime.fromisoformat(at).replace(tzinfo=zone)) for at in moments]


def left(draft: Draft) -> str:
    return "\n".join(map(str, draft.left))


# PagerDuty
# ----------------------------------------------------------------------------------------------------------
USERS: Mapping[str, Any] = {
    "users": [
        {"id": "PA", "type": "user", "name": "Alice A", "email": ALICE, "teams": [{"id": "T1", "summary": "Storage"}],
         "contact_methods": [{"type": "email_contact_method", "address": ALICE},
                             {"type": "phone_contact_method", "address": "5550100"}]},
        {"id": "PB", "type": "user", "name": "Bob B", "email": BOB, "teams": []},
        {"id": "PC", "type": "user", "name": "Charlie C", "email": CHARLIE, "teams": []},
    ],
    "more": False,
}  # fmt: skip
WEEKEND = {
    "type": "weekly_restriction",
    "start_day_of_week": 5,
    "start_time_of_day": "18:00:00",
    "duration_seconds": 226_800,
}
SCHEDULES: Mapping[str, Any] = {
    "schedules": [
        {"id": "S1", "type": "schedule", "name": "Storage primary", "time_zone": "Europe/Berlin",
         "teams": [{"id": "T1", "summary": "Storage"}],
         "schedule_layers": [
            {"name": "Layer 2", "start": "2026-01-01T00:00:00+01:00", "end": None,
             "rotation_virtual_start": "2026-01-02T18:00:00+01:00", "rotation_turn_length_seconds": 604800,
             "users": [{"user": {"id": "PC"}}], "restrictions": [WEEKEND]},
            {"name": "Layer 1", "start": "2026-01-01T00:00:00+01:00", "end": None,
             "rotation_virtual_start": "2026-01-05T09:00:00+01:00", "rotation_turn_length_seconds": 604800,
             "users": [{"user": {"id": "PA"}}, {"user": {"id": "PB"}}], "restrictions": []},
            {"name": "Layer 0", "start": "2020-01-01T00:00:00Z", "end": "2021-01-01T00:00:00Z",
             "rotation_virtual_start": "2020-01-01T00:00:00Z", "rotation_turn_length_seconds": 86400,
             "users": [{"user": {"id": "PX"}}], "restrictions": []},
         ]},
    ],
}  # fmt: skip
POLICIES: Mapping[str, Any] = {
    "escalation_policies": [
        {"id": "E1", "type": "escalation_policy", "name": "Storage", "num_loops": 2,
         "teams": [{"id": "T1", "summary": "Storage"}],
         "escalation_rules": [
            {"escalation_delay_in_minutes": 5, "targets": [{"id": "S1", "type": "schedule_reference"}]},
            {"escalation_delay_in_minutes": 10, "targets": [{"id": "PX", "type": "user_reference", "summary": "X"}]},
            {"escalation_delay_in_minutes": 15, "targets": [{"id": "PB", "type": "user_reference"}]},
         ]},
    ],
}  # fmt: skip


def test_of_pagerduty_the_same_people_are_on_call_and_paged_at_the_same_times() -> None:
    draft = pagerduty({"users.json": USERS, "s.json": SCHEDULES, "p.json": POLICIES}, {BOB: "bobby"}, NOW)
    assert [one["username"] for one in draft.file()["users"]] == ["alice", "charlie"]
    assert draft.file()["members"] == [{"team": "storage", "user": "alice", "role": "responder"}]
    assert on_call(
        draft, "storage-primary", "2026-03-04T12:00", "2026-03-06T17:59", "2026-03-06T18:00", "2026-03-09T08:59",
        "2026-03-09T09:00",
    ) == ["alice", "alice", "charlie", "charlie", "bobby"]  # fmt: skip
    (policy,) = draft.file()["escalation_policies"]
    assert policy["steps"] == [
        {"after": 0, "actions": [{"schedule": "storage-primary"}]},
        {"after": 900, "actions": [{"person": "bobby"}]},
    ], "the step of somebody unknown is left out, and its wait stays"
    assert (policy["repeats"], policy["repeat_after"], policy["team"]) == (2, 900, "storage")
    assert "the person PX is in none of the files" in left(draft)
    assert "phone: calls, messages and push go through your own provider" in left(draft)


def test_a_service_of_pagerduty_keeps_its_policy_by_a_route() -> None:
    service = {"type": "service", "id": "V1", "name": "Block storage", "escalation_policy": {"id": "E1"}}
    draft = pagerduty({"u": USERS, "s": SCHEDULES, "p": POLICIES, "v": {"services": [service]}}, {}, NOW)
    (route,) = draft.file()["routes"]
    assert (route["when"], route["policy"]) == ({"service": "block-storage"}, "storage")
    assert "add patterns of its components" in left(draft)


# Opsgenie
# ----------------------------------------------------------------------------------------------------------
def rotation(name: str, people: list[str], restriction: Mapping[str, Any] | None = None) -> dict[str, Any]:
    return {
        "name": name,
        "startDate": "2026-01-05T08:00:00Z",
        "type": "weekly",
        "length": 1,
        "participants": [{"type": "user", "username": one} for one in people],
        **({"timeRestriction": restriction} if restriction else {}),
    }


DAYS_ONLY = {
    "type": "time-of-day",
    "restriction": {"startHour": 8, "startMin": 0, "endHour": 20, "endMin": 0},
}
NIGHTS = {"type": "time-of-day", "restriction": {"startHour": 20, "startMin": 0, "endHour": 8, "endMin": 0}}
GENIE_USERS = {
    "data": [
        {"id": f"u{n}", "username": one, "fullName": one[0]} for n, one in enumerate((ALICE, BOB, CHARLIE))
    ]
}
GENIE_TEAM = {"data": {"id": "t", "name": "Net", "members": [{"user": {"username": ALICE}, "role": "admin"}]}}


def genie_schedule(*rotations: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "data": [
            {"id": "s", "name": "Net", "timezone": "UTC", "ownerTeam": {"id": "t"}, "rotations": [*rotations]}
        ]
    }


def test_of_opsgenie_rotations_that_are_apart_are_layers_and_others_schedules() -> None:
    files = {"u": GENIE_USERS, "t": GENIE_TEAM}
    day, night = rotation("day", [ALICE, BOB], DAYS_ONLY), rotation("night", [CHARLIE], NIGHTS)
    draft = opsgenie({**files, "s": genie_schedule(day, night)}, {}, NOW)
    assert on_call(
        draft, "net", "2026-01-05T09:00", "2026-01-05T21:00", "2026-01-06T03:00", "2026-01-12T09:00"
    ) == [
        "alice",
        "charlie",
        "charlie",
        "bob",
    ]
    assert draft.file()["members"] == [{"team": "net", "user": "alice", "role": "manager"}]
    escalation = {
        "data": [
            {
                "name": "Net",
                "ownerTeam": {"name": "Net"},
                "rules": [
                    {"delay": {"timeAmount": 0}, "recipient": {"type": "schedule", "id": "s"}},
                    {"delay": {"timeAmount": 15}, "recipient": {"type": "team", "id": "t"}},
                    {"condition": "if-not-closed", "delay": {"timeAmount": 10},
                     "recipient": {"type": "user", "username": BOB}},
                ],
                "repeat": {"waitInterval": 20, "count": 3},
            }
        ]
    }  # fmt: skip
    both = opsgenie(
        {**files, "s": genie_schedule(rotation("a", [ALICE]), rotation("b", [BOB])), "e": escalation}, {}, NOW
    )
    (policy,) = both.file()["escalation_policies"]
    assert policy["steps"] == [
        {"after": 0, "actions": [{"schedule": "net-a"}, {"schedule": "net-b"}]},
        {"after": 600, "actions": [{"person": "bob"}]},
        {"after": 300, "actions": [{"team": "net"}]},
    ], "delays there count from the alert"
    assert (policy["repeats"], policy["repeat_after"], policy["team"]) == (3, 1200, "net")
    assert "rotations of Net overlap" in left(both)
    assert "not until the alert is closed" in left(both)


def test_weekends_of_opsgenie_go_over_the_end_of_the_week() -> None:
    weekend = {
        "type": "weekday-and-time-of-day",
        "restrictions": [
            {
                "startDay": "friday",
                "startHour": 18,
                "startMin": 0,
                "endDay": "monday",
                "endHour": 8,
                "endMin": 30,
            }
        ],
    }
    draft = opsgenie({"u": GENIE_USERS, "s": genie_schedule(rotation("weekend", [ALICE], weekend))}, {}, NOW)
    assert on_call(
        draft, "net", "2026-03-06T17:59", "2026-03-06T18:00", "2026-03-08T23:59", "2026-03-09T08:29", "2026-03-09T08:30"
    ) == [None, "alice", "alice", "alice", None]  # fmt: skip
    assert "its team t is in none of the files" in left(draft)


# Grafana OnCall
# ----------------------------------------------------------------------------------------------------------
def test_of_grafana_oncall_levels_are_layers_and_waits_are_times() -> None:
    users = {
        "results": [
            {"id": "U1", "username": "alice", "email": ALICE},
            {"id": "U2", "username": "bob", "email": BOB},
        ]
    }
    shifts = {
        "results": [
            {"id": "O1", "type": "rolling_users", "name": "weeks", "level": 1, "start": "2026-01-05T09:00:00",
             "rotation_start": "2026-01-05T09:00:00", "duration": 604800, "frequency": "weekly", "interval": 1,
             "rolling_users": [["U1"], ["U2"]]},
            {"id": "O2", "type": "recurrent_event", "name": "saturdays", "level": 2, "start": "2026-01-03T10:00:00",
             "duration": 14400, "frequency": "weekly", "by_day": ["SA"], "users": ["U1"]},
            {"id": "O3", "type": "single_event", "name": "once", "start": "2026-01-03T10:00:00", "duration": 3600,
             "users": ["U2"]},
        ]
    }  # fmt: skip
    schedules = {
        "results": [
            {"id": "S", "type": "calendar", "name": "Net", "time_zone": "UTC", "shifts": ["O1", "O2", "O3"]}
        ]
    }
    chains = {"results": [{"id": "F", "name": "Net", "team_id": None}]}
    steps = {
        "results": [
            {"escalation_chain_id": "F", "position": 2, "type": "notify_persons", "persons_to_notify": ["U2"]},
            {"escalation_chain_id": "F", "position": 1, "type": "wait", "duration": 300},
            {"escalation_chain_id": "F", "position": 0, "type": "notify_on_call_from_schedule",
             "notify_on_call_from_schedule": "S"},
            {"escalation_chain_id": "F", "position": 3, "type": "trigger_webhook"},
            {"escalation_chain_id": "F", "position": 4, "type": "repeat_escalation"},
        ]
    }  # fmt: skip
    draft = grafana_oncall({"a": users, "b": shifts, "c": schedules, "d": chains, "e": steps}, {}, NOW)
    assert on_call(
        draft, "net", "2026-03-03T12:00", "2026-03-11T12:00", "2026-03-14T09:59", "2026-03-14T10:00"
    ) == ["alice", "bob", "bob", "alice"]
    (policy,) = draft.file()["escalation_policies"]
    assert policy["steps"] == [
        {"after": 0, "actions": [{"schedule": "net"}]},
        {"after": 300, "actions": [{"person": "bob"}]},
    ]
    assert policy["repeats"] == 5
    assert "is a single event" in left(draft)
    assert "trigger_webhook cannot be translated" in left(draft)


# Alertmanager
# ----------------------------------------------------------------------------------------------------------
def test_of_templates_the_list_says_where_messages_have_their_values() -> None:
    draft = alertmanager(
        """\
route: {receiver: chat}
templates: [/etc/alertmanager/*.tmpl]
receivers:
- name: chat
  slack_configs:
  - api_url: https://hooks.slack.com/services/x
    title: '{{ .CommonAnnotations.summary }} on {{ .CommonLabels.instance }}'
    text: '{{ template "ours.text" . }} {{ range .Alerts }}{{ .Annotations.runbook_url }} {{ .Labels.rack }}{{ end }}'
    color: danger
"""
    )
    listed = "\n".join(map(str, draft.left))
    assert "title: text is Dossier's own; in messages as component, title" in listed
    assert (
        "text: text is Dossier's own; in messages as count of alerts, link; label rack: in messages with labels and "
        "description; template ours.text is not read"
    ) in listed
    assert "not translated: color" in listed
    assert "templates" in listed


def test_times_at_which_a_route_is_not_active_are_maintenance() -> None:
    draft = alertmanager(
        """
route: {receiver: ops, routes: [{matchers: ['team="batch"'], active_time_intervals: [office]}]}
receivers: [{name: ops, webhook_configs: [{url: 'https://example.com/x'}]}]
time_intervals:
- name: office
  time_intervals:
  - {weekdays: ['monday:friday'], times: [{start_time: '09:00', end_time: '17:00'}], location: Europe/Berlin}
"""
    )
    spans = [
        times_from(
            datetime.fromisoformat(one["starts_at"]),
            datetime.fromisoformat(one["ends_at"]),
            recurrence_from("rule", one["rule"], one["time_zone"]),
        )
        for one in draft.file()["maintenance"]
    ]
    zone = ZoneInfo("Europe/Berlin")
    for text, muted in (
        ("2026-07-06T08:59", True),
        ("2026-07-06T09:00", False),
        ("2026-07-06T16:59", False),
        ("2026-07-06T17:00", True),
        ("2026-07-11T12:00", True),
    ):
        at = datetime.fromisoformat(text).replace(tzinfo=zone)
        assert any(span.at(at) for span in spans) == muted, text
    assert draft.variables == {"CHANNEL_ADDRESS_OPS_WEBHOOK": "https://example.com/x"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("groups: []", "line 1: is no configuration of an Alertmanager"),
        ("route: {receiver: x\n", "is not valid YAML"),
        ("route: {receiver: ops}\nreceivers: []", "line 1: route.receiver: no receiver 'ops'"),
        ("route:\n  receiver: a\n  matchers: ['x=~[']\nreceivers: [{name: a}]", "line 1: route: "),
        (
            "route:\n  receiver: a\n  repeat_interval: soon\nreceivers: [{name: a}]",
            "line 3: route.repeat_interval",
        ),
        (
            "route:\n  receiver: a\n  routes: 3\nreceivers: [{name: a}]",
            "line 3: route.routes: must be a list",
        ),
    ],
)
def test_what_is_no_configuration_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(InvalidImportError) as error:
        alertmanager(text)
    assert told in str(error.value)


@pytest.mark.parametrize(
    ("files", "told"),
    [
        ({"x.json": [1]}, "x.json: must be an object"),
        ({"x.json": {"answer": 42}}, "x.json: is not a user, team, schedule"),
        ({"x.json": {"users": []}}, "the files are empty"),
        (
            {"u": USERS, "s": {"schedules": [{**SCHEDULES["schedules"][0], "time_zone": "Mars"}]}},
            "time_zone: ",
        ),
    ],
)
def test_what_is_no_export_is_told_with_its_file(files: dict[str, Any], told: str) -> None:
    with pytest.raises(InvalidImportError) as error:
        pagerduty(files, {}, NOW)
    assert told in str(error.value)


def test_a_span_of_days_is_cut_into_times_that_layers_have() -> None:
    assert times(6 * 1440 + 1380, 120) == [{"days": ["sun"], "from": "23:00", "to": "01:00"}]
    assert len(times(0, 10**6)) == 7
