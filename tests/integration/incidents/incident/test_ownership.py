"""Incidents that move between teams: over the API, in lists, in metrics."""

from __future__ import annotations

import pytest
from django.test import Client

from incidents import commands, queries
from incidents.commands import Report
from incidents.queries import list_incidents, parse_filters, unanswered
from ingest.queries import Context
from tests.integration.incidents.incident.test_api import Call, caller, opened

ALICE, BOB = Context("user:alice"), Context("user:bob")


@pytest.fixture
def api() -> Call:
    return caller("incidents:read", "incidents:write")


def handed_over(api: Call) -> str:
    id_ = opened(api, component="storage_cluster/s7")
    api("POST", f"incidents/{id_}/hand_over", {"team": "network", "reason": "the ToR drops"})
    return id_


@pytest.mark.django_db
def test_a_ticket_goes_wrong_is_bounced_and_settles_and_all_of_it_is_measured(api: Call) -> None:
    id_ = handed_over(api)
    api("POST", f"incidents/{id_}/bounce", {"reason": "no port of ours drops"})
    api("POST", f"incidents/{id_}/hand_over", {"team": "compute", "reason": "the host then"})
    api("POST", f"incidents/{id_}/accept")
    found = api("POST", f"incidents/{id_}/resolve", {"confirmed_cause": "host/h3"}).json()
    assert (found["team"], found["hops"], found["rejections"], found["accepted_by"]) == (
        "compute",
        3,
        1,
        "key:ci",
    )
    assert set(found["ownership"]["teams"]) == {"storage", "network", "compute"}
    assert found["seconds_to_team"] >= 0


@pytest.mark.django_db
@pytest.mark.parametrize(("verb", "body"), [("accept", {}), ("bounce", {"reason": "no"}), ("undo", {})])
def test_an_answer_to_no_hand_over_is_a_conflict_that_says_so(
    api: Call, verb: str, body: dict[str, str]
) -> None:
    response = api("POST", f"incidents/{opened(api)}/{verb}", body)
    assert response.status_code == 409
    assert "has no pending hand-over" in response.json()["detail"]


@pytest.mark.django_db
def test_a_bounce_without_a_reason_is_refused_by_field(api: Call) -> None:
    response = api("POST", f"incidents/{handed_over(api)}/bounce", {})
    assert (response.status_code, list(response.json()["errors"])) == (400, ["reason"])


@pytest.mark.django_db
def test_a_hand_over_is_undone(api: Call) -> None:
    found = api("POST", f"incidents/{handed_over(api)}/undo").json()
    assert (found["team"], found["hops"], found["handed_from"]) == ("storage", 0, None)


@pytest.fixture
def three(db: None) -> list[int]:  # noqa: ARG001
    """Never moved; bounced back; has no pending hand-over."""
    ids = [
        commands.open_incident(Report("Disks fail", component="storage_cluster/s7"), ALICE).incident.id
        for _ in range(3)
    ]
    for id_ in ids[1:]:
        commands.hand_over(id_, "network", "theirs", ALICE)
    commands.bounce(ids[1], "not ours", BOB)
    return [queries.get(id_).incident.number for id_ in ids]


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"rejections_min": ["1"]}, [1]),
        ({"rejections_max": ["0"]}, [0, 2]),
        ({"handed_from": ["storage"]}, [2]),
        ({"handed_from": [""]}, [0, 1]),
        ({"seconds_to_team_max": ["60"]}, []),
    ],
)
def test_a_list_is_filtered_by_how_tickets_moved(
    three: list[int], given: dict[str, list[str]], found: list[int]
) -> None:
    page = list_incidents(parse_filters(given), order="oldest")
    assert [three.index(view.incident.number) for view in page.items] == found


def test_the_order_by_hops_shows_the_most_passed_on_first(three: list[int]) -> None:
    assert [three.index(view.incident.number) for view in list_incidents(order="hops").items] == [1, 2, 0]


@pytest.mark.usefixtures("three")
def test_hand_overs_that_wait_are_counted_by_the_team_that_sent_them() -> None:
    assert unanswered() == {"storage": 1}


@pytest.mark.usefixtures("log_database")
def test_moves_and_times_are_told_to_prometheus() -> None:
    def told() -> dict[str, float]:
        lines = Client().get("/metrics").content.decode().splitlines()
        return {line.rpartition(" ")[0]: float(line.rpartition(" ")[2]) for line in lines if line[:1] != "#"}

    before = told()
    id_ = commands.open_incident(Report("Disks fail", component="storage_cluster/s7"), ALICE).incident.id
    commands.acknowledge(id_, ALICE)
    commands.hand_over(id_, "network", "theirs", ALICE)
    commands.bounce(id_, "not ours", BOB)
    commands.hand_over(id_, "compute", "then yours", ALICE)
    now = told()
    moves = 'dossier_incident_moves_total{kind="bounce",source="network",target="storage"}'
    assert now[moves] - before.get(moves, 0.0) == 1
    assert now['dossier_incidents_unanswered{team="storage"}'] == 1
    assert now['dossier_incident_team_seconds_total{team="network"}'] >= 0
    assert now['dossier_incident_owner_seconds_total{owner="alice"}'] > 0
