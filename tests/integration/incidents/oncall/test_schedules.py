"""Schedules over HTTP: configured, and asked on call."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth import get_user_model
from django.test import Client

from incidents.escalation.models import EscalationPolicy
from incidents.oncall import queries
from incidents.oncall.models import OnCallSchedule
from ingest.queries import configured
from tests.integration.incidents.oncall.cases import DAY, LAYER, NOW, STORAGE, call, in_days, storage

pytestmark = pytest.mark.usefixtures("people_of_schedules")


# Configuring
# ----------------------------------------------------------------------------------------------------------
def test_a_schedule_is_kept_as_it_was_written() -> None:
    storage()
    kept = call("get", "schedules/storage").json()
    assert {name: kept[name] for name in STORAGE} == STORAGE


def test_a_schedule_says_how_it_stands() -> None:
    standing = storage()["status"]
    assert {standing["person"], standing["then"]} == {"alice", "bob"}
    assert standing["gaps"] == standing["gone"] == []


def test_a_schedule_with_a_gap_warns_of_it() -> None:
    ends = (NOW + 3 * DAY).replace(tzinfo=None, hour=12, minute=0, second=0).isoformat()
    [gap] = storage(time_zone="UTC", layers=[{**LAYER, "end": ends}])["status"]["gaps"]
    assert gap["start"] == f"{ends}Z"


def test_every_change_is_recorded_with_before_and_after() -> None:
    storage()
    call("patch", "schedules/storage", {"name": "Disks"})
    call("delete", "schedules/storage")
    told = [(one.body["before"], one.body["after"]) for one in configured("schedule", "storage")]
    assert [(before and before["name"], after and after["name"]) for before, after in told] == [
        (None, "Storage on call"),
        ("Storage on call", "Disks"),
        ("Disks", None),
    ]


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"layers": [{**LAYER, "people": ["mallory"]}]}, "layers"),
        ({"layers": [{**LAYER, "turn": "1m"}]}, "layers[0].turn"),
        ({"time_zone": "Mars/Base"}, "time_zone"),
        ({"team": "nowhere"}, "team"),
        ({"holidays": ["nowhere"]}, "holidays"),
        ({"name": "a\u0000b"}, "name"),
        ({"colour": "red"}, "colour"),
    ],
    ids=str,
)
def test_what_is_wrong_is_refused_by_name_and_nothing_is_stored(changed: Any, field: str) -> None:
    answer = call("post", "schedules", {**STORAGE, **changed})
    assert answer.status_code == 400
    assert field in answer.json()["errors"]
    assert not OnCallSchedule.objects.exists()


def test_somebody_who_may_not_sign_in_is_not_put_into_a_layer() -> None:
    get_user_model().objects.filter(username="bob").update(is_active=False)
    assert "bob" in call("post", "schedules", STORAGE).json()["errors"]["layers"][0]


def test_a_schedule_keeps_its_name_for_those_who_name_it() -> None:
    storage()
    assert call("patch", "schedules/storage", {"slug": "disks"}).status_code == 400


def test_a_schedule_that_a_policy_calls_is_not_removed() -> None:
    storage()
    steps = [{"after": 0, "actions": [{"schedule": "storage"}]}]
    EscalationPolicy.objects.create(slug="disks", name="Disks", steps=steps)
    answer = call("delete", "schedules/storage")
    assert (answer.status_code, "Disks" in answer.json()["detail"]) == (409, True)
    assert OnCallSchedule.objects.exists()


# Asking
# ----------------------------------------------------------------------------------------------------------
def test_everybody_on_call_is_one_question() -> None:
    storage()
    [found] = call("get", "on_call", who="charlie").json()["results"]
    assert (found["schedule"], found["people"]) == ("storage", list(queries.on_call("storage", NOW)))


def test_shifts_come_with_what_each_person_does() -> None:
    storage()
    told = call("get", f"schedules/storage/shifts?from={in_days(0)}&to={in_days(10)}").json()
    assert sum(told["hours"].values()) == 240
    assert told["gaps"] == []


@pytest.mark.parametrize(
    "query",
    [
        f"from={in_days(0)}&to={in_days(371)}",
        f"from={in_days(1)}&to={in_days(0)}",
        "from=0001-01-01T00:00:00Z",
        "to=9999-12-31T23:59:59Z",
        "from=now",
        "from=%00",
        "colour=red",
    ],
    ids=range(7),  # not by their values, which change with the clock: all workers have to collect the same
)
def test_a_span_that_makes_no_sense_is_refused(query: str) -> None:
    storage()
    assert call("get", f"schedules/storage/shifts?{query}").status_code == 400


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("get", "on_call"),
        ("get", "shifts"),
        ("get", "overrides"),
        ("delete", "overrides/7"),
        ("delete", "swaps/7"),
    ],
)
def test_a_schedule_that_is_not_there_is_said_to_be_so(method: str, path: str) -> None:
    assert call(method, f"schedules/nowhere/{path}").status_code == 404


# Elsewhere
# ----------------------------------------------------------------------------------------------------------
def test_somebody_who_left_does_not_keep_a_schedule_from_being_changed() -> None:
    storage()
    get_user_model().objects.filter(username="bob").update(is_active=False)
    answer = call("patch", "schedules/storage", {"layers": [{**LAYER, "turn": "1w"}]})
    assert (answer.status_code, answer.json()["status"]["gone"]) == (200, ["bob"])


def test_gaps_are_a_metric() -> None:
    storage(layers=[{**LAYER, "end": "2026-01-06T09:00"}])
    told = Client().get("/metrics").content.decode()
    assert f'dossier_oncall_gap_seconds{{schedule="storage"}} {14 * 86_400:.6e}'.split()[0] in told
    assert queries.uncovered(NOW) == {"storage": 14 * DAY}
