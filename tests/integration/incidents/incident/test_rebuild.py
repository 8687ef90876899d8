"""Folded state = projected row = rebuilt row, whatever was commanded in whatever order."""

from __future__ import annotations

import threading
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db import connection, connections, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incidents import commands, queries
from incidents.commands import CommandRefusedError, Report
from incidents.domain.incident import commands as c
from incidents.domain.incident.evolve import fold
from incidents.domain.incident.finding import Finding
from incidents.domain.routing.rules import Routing
from incidents.incident.models import EvidenceItem, IncidentRow, TimelineEntry
from incidents.incident.projection import state_of, timeline_of
from incidents.incident.rebuild import checksums, rebuild, rebuild_incidents
from incidents.incident.repository import next_number, record, record_opening
from ingest.queries import Context, read_stream
from tests.unit.incidents.incident.cases import NOON, finding, word

ALICE = Context("user:alice")
STORAGE = Routing("storage", 6, "routed to Storage because rule 6 matched `storage_cluster/*`")

TOMORROW, NEXT_WEEK = (datetime.now() + timedelta(days=days) for days in (1, 7))  # noqa: DTZ005
words = st.text("ab é\n", min_size=1, max_size=5).filter(str.strip)
evidence = st.just(({"kind": "table", "title": "t", "columns": ["a"], "rows": [[1.5]]},))
findings = st.builds(
    lambda minutes, score, rate, others, analyzer: finding(
        "storage_cluster/s7",
        others,
        run=str(uuid4()),  # a finding is placed once, and all examples share the database
        end=NOON + timedelta(minutes=minutes),
        score=score,
        failure_rate=rate,
        analyzer=analyzer,
        schedule=analyzer,
    ),
    minutes=st.integers(0, 200),
    score=st.none() | st.floats(0, 1),
    rate=st.none() | st.floats(0, 1),
    others=st.lists(st.sampled_from(["tor/t1", "tor/t2"]), unique=True),
    analyzer=st.sampled_from(["deepview", "voting"]),
)
words_of_runs = st.builds(
    lambda minutes, other, analyzer: word(
        other, analyzer=analyzer, schedule=analyzer, end=NOON + timedelta(minutes=minutes)
    ),
    minutes=st.integers(0, 200),
    other=st.sampled_from([None, "link/a", "link/b"]),
    analyzer=st.sampled_from(["deepview", "voting", "netbouncer"]),
)
any_command: st.SearchStrategy[c.Command] = st.one_of(
    st.builds(c.Acknowledge),
    st.builds(c.Unacknowledge),
    st.builds(c.Assign, st.none() | st.sampled_from(["alice", "bob"])),
    st.builds(c.HandOver, st.sampled_from(["network", "storage"]), words),
    st.builds(c.Accept),
    st.builds(c.Bounce, words),
    st.builds(c.Undo, st.sampled_from([None, "hand_over", "snooze"])),
    st.builds(
        c.Snooze, st.none() | st.datetimes(TOMORROW, NEXT_WEEK).map(lambda day: day.replace(tzinfo=UTC))
    ),
    st.builds(c.Unsnooze),
    st.builds(c.Comment, words, st.sampled_from([(), ({"href": "https://example.org/log", "text": ""},)])),
    st.builds(c.SetSeverity, st.sampled_from(["critical", "error", "warning", "info"])),
    st.builds(c.SetTitle, st.sampled_from(["one", "two"])),
    st.builds(c.Link, st.sampled_from(["https://example.org/1", "http://example.org/2"])),
    st.builds(c.AttachEvidence, evidence),
    st.builds(
        c.Resolve,
        st.sampled_from(["none", "tor/t1"]),
        words,
        st.sampled_from([{}, {"unit_failure@default": NOON - timedelta(hours=1)}]),
    ),
    st.builds(c.Reopen, words),
    st.builds(c.Join, st.builds(Report, st.just("again"), severity=st.sampled_from([None, "error", "info"]))),
    st.builds(c.JoinFinding, findings),
    st.builds(c.RecordFinding, findings),
    st.builds(
        c.ClearFinding,
        st.just("run-x"),
        st.sampled_from(["deepview", "voting"]),
        st.just("deepview"),
        st.just("2026-11-21T13:00:00Z"),
    ),
    st.builds(c.NoteOpinion, words_of_runs),
    st.builds(
        c.RecordMissedCause,
        st.just("tor/t1"),
        st.just("netbouncer"),
        st.just("1.0.0"),
        st.just(3),
        st.just("2026-11-21T12:00:00Z"),
        st.just("2026-11-21T13:00:00Z"),
        st.just("run-m"),
    ),
)


@pytest.mark.usefixtures("log_database")
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.none() | findings, st.lists(any_command, max_size=12))
def test_folded_projected_and_rebuilt_are_the_same(first: Finding | None, sequence: list[c.Command]) -> None:
    id_ = _opened(first)
    for command in sequence:
        _try(id_, command)
    before, events = checksums([id_]), read_stream(f"incident/{id_}")
    assert state_of(IncidentRow.objects.get(pk=id_)) == fold(events)
    assert queries.timeline(id_) == timeline_of(events)
    assert not rebuild_incidents([id_])
    assert checksums([id_]) == before


def _opened(first: Finding | None) -> str:
    if first is None:
        return commands.open_incident(Report("Disks fail"), ALICE).incident.id
    alone = replace(first, region=str(uuid4()))
    with transaction.atomic():
        opening = c.OpenForFinding(str(uuid4()), next_number(), STORAGE, alone, "sure", alone.dedup_key)
        return record_opening(opening, ALICE).incident.id


def _try(id_: str, command: c.Command) -> None:
    try:
        with transaction.atomic():
            record(id_, command, ALICE)
    except CommandRefusedError:
        pass


@pytest.fixture
def incident(log_database: str) -> str:  # noqa: ARG001
    id_ = commands.open_incident(Report("Disks fail", component="disk/7"), ALICE).incident.id
    commands.comment(id_, "looking", ALICE)
    return id_


@pytest.mark.usefixtures("incident")
def test_a_rebuild_of_true_projections_says_that_nothing_differed() -> None:
    said = StringIO()
    with redirect_stdout(said):
        call_command("rebuild_projections")
    assert said.getvalue() == "1 incidents rebuilt from the log; nothing differed\n"


def test_a_rebuild_mends_and_names_what_someone_changed_by_hand(incident: str) -> None:
    IncidentRow.objects.update(title="tampered")
    assert rebuild().differed == (incident,)
    assert queries.get(incident).incident.title == "Disks fail"


def test_a_rebuild_brings_back_dropped_rows_with_the_same_number(incident: str) -> None:
    before = queries.get(incident)
    IncidentRow.objects.all().delete()
    rebuild()
    assert queries.get(incident) == before


def test_a_rebuild_removes_a_ticket_that_the_log_does_not_know(incident: str) -> None:
    row = IncidentRow.objects.get(pk=incident)
    row.pk, row.number, row.dedup_key = "00000000-0000-4000-8000-000000000000", 99, "other"
    row.save(force_insert=True)
    assert rebuild().differed == ("00000000-0000-4000-8000-000000000000",)


@pytest.mark.usefixtures("incident")
def test_after_a_rebuild_from_the_log_alone_no_number_is_given_twice() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER SEQUENCE incident_number RESTART")
    rebuild()
    assert next_number() == 2


def test_writers_go_on_during_a_rebuild_and_nothing_is_lost(incident: str) -> None:
    stop, failures = threading.Event(), []

    def write() -> None:
        try:
            while not stop.is_set():
                commands.comment(incident, "still here", ALICE)
        except Exception as error:  # noqa: BLE001  (reported by the test below)
            failures.append(error)
        finally:
            connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        results = [rebuild().differed for _ in range(5)]
    finally:
        stop.set()
        writer.join()
    assert (failures, results) == ([], [()] * 5)
    assert TimelineEntry.objects.count() == len(read_stream(f"incident/{incident}"))
    assert EvidenceItem.objects.count() == 0
