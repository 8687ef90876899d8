from __future__ import annotations

import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor

import pytest
from django.db import IntegrityError, connections, transaction

from incidents import commands, queries
from incidents.commands import CommandRefusedError, IncidentNotFoundError, InvalidValueError, Report
from incidents.incident.models import IncidentRow
from ingest.queries import Context, read_stream

ALICE = Context("user:alice", trace="req-1")
pytestmark = pytest.mark.usefixtures("log_database")


def opened(**fields: str) -> str:
    return commands.open_incident(Report(**{"title": "Disks fail", **fields}), ALICE).incident.id  # type: ignore[arg-type]


def test_an_opened_incident_is_readable_on_return() -> None:
    id_ = opened(component="storage_cluster/s7")
    view = queries.get(id_)
    assert (view.incident.team, view.incident.state) == ("storage", "open")
    assert (
        view.incident.routing
        == "routed to Storage because rule `storage_cluster` (7th) matched `storage_cluster/*`"
    )


def test_an_incident_is_found_by_its_number() -> None:
    id_ = opened()
    assert queries.get(str(queries.get(id_).incident.number)).incident.id == id_


def test_a_report_that_is_repeated_is_one_line_of_the_timeline() -> None:
    id_ = opened(dedup_key="disk7")
    for _ in range(5):
        opened(dedup_key="disk7")
    assert [(e.count, e.text) for e in queries.timeline(id_)][1:] == [
        (5, "alice reported the incident 5 more times, last: Disks fail")
    ]


def test_numbers_count_from_one() -> None:
    assert [queries.get(opened()).incident.number for _ in range(3)] == [1, 2, 3]


def test_events_carry_actor_and_request() -> None:
    event = commands.acknowledge(opened(), ALICE).events[0]
    assert (event.actor, event.trace) == ("user:alice", "req-1")


def test_a_refused_command_records_nothing() -> None:
    id_ = opened()
    commands.resolve(id_, "none", "", ALICE)
    with pytest.raises(CommandRefusedError):
        commands.acknowledge(id_, ALICE)
    assert [e.type for e in read_stream(f"incident/{id_}")] == ["incident.opened", "incident.resolved"]


def test_a_hand_over_to_a_team_that_is_not_there_names_the_teams() -> None:
    with pytest.raises(InvalidValueError, match="no such team; use compute, network"):
        commands.hand_over(opened(), "nobody", "why", ALICE)


def test_an_unknown_incident_is_said_to_be_unknown() -> None:
    with pytest.raises(IncidentNotFoundError):
        commands.acknowledge("00000000-0000-4000-8000-000000000000", ALICE)


def test_a_report_with_the_key_of_an_open_ticket_joins_it() -> None:
    first = commands.open_incident(Report("Disk 7", dedup_key="disk7"), ALICE)
    second = commands.open_incident(Report("Disk 7 again", dedup_key="disk7"), ALICE)
    assert (second.opened, second.incident.id, second.incident.alerts) == (False, first.incident.id, 2)


def test_a_resolved_ticket_swallows_no_new_report() -> None:
    first = opened(dedup_key="disk7")
    commands.resolve(first, "none", "", ALICE)
    assert opened(dedup_key="disk7") != first


def test_reopening_is_refused_while_another_ticket_holds_the_key() -> None:
    first = opened(dedup_key="disk7")
    commands.resolve(first, "none", "", ALICE)
    opened(dedup_key="disk7")
    with pytest.raises(CommandRefusedError, match="#2 is already open for the same dedup key"):
        commands.reopen(first, "", ALICE)


def test_sixteen_posts_of_one_key_at_once_open_one_ticket() -> None:
    barrier = threading.Barrier(16)

    def post(_: int) -> bool:
        barrier.wait()
        try:
            return commands.open_incident(Report("Disk 7", dedup_key="disk7"), ALICE).opened
        finally:
            connections.close_all()

    with ThreadPoolExecutor(16) as pool:
        assert Counter(pool.map(post, range(16))) == {True: 1, False: 15}
    assert queries.get("1").incident.alerts == 16


def test_the_database_itself_refuses_a_second_open_ticket_of_a_key() -> None:
    row = IncidentRow.objects.get(pk=opened(dedup_key="disk7"))
    row.pk, row.number = "00000000-0000-4000-8000-000000000000", 99
    with pytest.raises(IntegrityError, match="one_open_incident_per_key"), transaction.atomic():
        row.save(force_insert=True)


def test_sixteen_comments_at_once_are_all_kept() -> None:
    id_ = opened()

    def say(n: int) -> None:
        try:
            commands.comment(id_, f"comment {n}", ALICE)
        finally:
            connections.close_all()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(say, range(16)))
    assert len(queries.timeline(id_)) == 17
