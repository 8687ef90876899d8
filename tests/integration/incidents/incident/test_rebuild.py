"""Folded state = projected row = rebuilt row, whatever was commanded in whatever order."""

from __future__ import annotations

import os
import signal
import threading
import time
import traceback
from collections.abc import Sequence
from contextlib import redirect_stdout
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO
from itertools import count
from typing import Any
from uuid import uuid4

import pytest
from django.core.management import CommandError, call_command
from django.db import connection, connections, transaction
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from incidents import commands, queries
from incidents.commands import CommandRefusedError, Report
from incidents.domain.incident import commands as c
from incidents.domain.incident.evolve import fold
from incidents.domain.incident.finding import Finding
from incidents.domain.routing.rules import Routing
from incidents.incident import rebuild as rebuilding
from incidents.incident.management.commands.rebuild_projections import line
from incidents.incident.models import EvidenceItem, IncidentRow, MemberAlert, RebuildProgress, TimelineEntry
from incidents.incident.projection import Change, change, state_of, timeline_of
from incidents.incident.rebuild import Progress, checksums, rebuild, rebuild_incidents
from incidents.incident.repository import next_number, record, record_opening
from ingest.queries import Context, Event, read_stream
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
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
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
def test_a_rebuild_removes_members_of_what_is_no_incident() -> None:
    stranger = "00000000-0000-4000-8000-000000000000"
    MemberAlert.objects.create(
        incident_id=stranger, version=1, alert=uuid4(), resolved=False, at="2026-01-02T03:04:05Z"
    )
    assert rebuild().differed == (stranger,)
    assert not MemberAlert.objects.exists()


@pytest.mark.usefixtures("incident")
def test_after_a_rebuild_from_the_log_alone_no_number_is_given_twice() -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER SEQUENCE incident_number RESTART")
    rebuild()
    assert next_number() == 2


def _several(count: int) -> list[str]:
    ids = []
    for number in range(count):
        ids.append(commands.open_incident(Report(f"Disks {number} fail"), ALICE).incident.id)
        commands.comment(ids[-1], 'C:\\logs\t"é"\nbelow', ALICE)
    return ids


@pytest.mark.usefixtures("log_database")
def test_a_rebuild_that_is_killed_anywhere_goes_on_where_it_was(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "TOGETHER", 2)
    ids = _several(5)
    before = checksums(ids)
    wrong = {ids[0], ids[1], ids[4]}
    resumed: list[float] = []
    for statement in range(1, 200, 2):
        if not RebuildProgress.objects.exists():
            IncidentRow.objects.filter(pk__in=wrong).update(title="tampered")
            TimelineEntry.objects.filter(incident__pk=ids[4]).delete()
        if _killed_at(statement):
            resumed += RebuildProgress.objects.values_list("incidents", flat=True)
            continue
        break
    else:
        raise AssertionError("no rebuild came to its end")
    assert {0, 2, 4, 5} <= set(resumed), "killed before, between and after the batches"
    assert checksums(ids) == before
    assert not RebuildProgress.objects.exists()


def _killed_at(statement: int) -> bool:
    """Whether a process that rebuilds was killed, without a word, before that statement; else it came to its end."""
    connections.close_all()  # each process has connections of its own
    pid = os.fork()
    if pid == 0:
        left = count(statement, -1)

        def die(execute: Any, *args: Any) -> Any:
            if next(left) == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return execute(*args)

        try:
            with connection.execute_wrapper(die):
                rebuild()
            os._exit(0)
        finally:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -signal.SIGKILL)
    return status != 0


@pytest.mark.usefixtures("log_database")
def test_an_incident_that_cannot_be_built_ahead_ends_the_rebuild_after_those_before_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rebuilding, "TOGETHER", 1)
    ids = _several(4)
    before = _dumped()
    IncidentRow.objects.filter(pk__in=ids).delete()

    def fail(state: Any, events: Sequence[Event]) -> Change:
        if events[0].stream == f"incident/{ids[2]}":
            raise ZeroDivisionError
        return change(state, events)

    monkeypatch.setattr(rebuilding, "change", fail)
    with pytest.raises(ZeroDivisionError):
        rebuild()
    assert RebuildProgress.objects.get().incidents == 2
    monkeypatch.setattr(rebuilding, "change", change)
    assert rebuild().differed == tuple(ids)
    assert _dumped() == before
    assert _other_sessions() == 0, "the thread that builds ahead has closed its connection"


def _dumped() -> dict[str, str]:
    """The tables as Postgres writes them, but for surrogate keys."""
    tables = {}
    for model in rebuilding._models():
        named, out = ", ".join(f'"{name}"' for name in rebuilding._columns(model)), StringIO()
        with connection.cursor() as cursor:
            cursor.copy_expert(
                f'COPY (SELECT {named} FROM "{model._meta.db_table}" ORDER BY 1, 2, 3) TO STDOUT', out
            )
        tables[model._meta.db_table] = out.getvalue()
    return tables


def _other_sessions() -> int:
    """Number of sessions of this database but this one, as soon as those that are closed have ended."""
    for _ in range(100):
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database()"
                " AND backend_type = 'client backend' AND pid <> pg_backend_pid()"
            )
            found = int(cursor.fetchone()[0])
        if not found:
            break
        time.sleep(0.05)
    return found


@pytest.mark.usefixtures("log_database")
def test_a_large_incident_is_a_group_of_its_own_and_a_small_slice_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rebuilding, "MOST_EVENTS", 5)
    monkeypatch.setattr(rebuilding, "HOT", 1)
    ids = _several(5)
    for number in range(7):
        commands.comment(ids[1], f"again {number}", ALICE)
    commands.attach_evidence(ids[3], ({"kind": "text", "title": "t", "text": "e"},), ALICE)
    before = _dumped()
    assert rebuild().differed == ()
    IncidentRow.objects.all().delete()
    assert rebuild().differed == tuple(ids)
    assert _dumped() == before


@pytest.mark.usefixtures("log_database")
def test_a_resumed_rebuild_names_what_differed_before_it_was_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "TOGETHER", 1)
    ids = _several(3)
    IncidentRow.objects.filter(pk__in=(ids[0], ids[2])).update(title="tampered")

    def end(now: Progress) -> None:
        if now.incidents == 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rebuild(end)
    seen: list[Progress] = []
    assert rebuild(seen.append).differed == (ids[0], ids[2])
    assert [one.incidents for one in seen] == [2, 3]
    assert seen[0].resumed is not None


@pytest.mark.usefixtures("log_database")
@pytest.mark.parametrize("from_start", [True, False])
def test_an_old_rebuild_and_one_that_is_not_wanted_are_not_resumed(from_start: bool) -> None:
    _several(1)
    old = datetime.now(UTC) - (timedelta(minutes=1) if from_start else timedelta(days=2))
    RebuildProgress.objects.create(began_at=old, moved_at=old, position="f" * 36, incidents=7)
    seen: list[Progress] = []
    assert rebuild(seen.append, from_start=from_start).incidents == 1
    assert [(one.incidents, one.resumed) for one in seen] == [(0, None), (1, None)]


@pytest.mark.usefixtures("incident")
def test_a_second_rebuild_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rebuilding, "PATIENCE", 0.1)
    other = connection.copy()
    try:
        with other.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_lock(hashtextextended('rebuild of incidents', 0))")
        with pytest.raises(CommandError, match="another process rebuilds the read models; wait for its end"):
            call_command("rebuild_projections")
    finally:
        other.close()


@pytest.mark.usefixtures("incident")
def test_a_rebuild_waits_for_the_lock_of_one_whose_death_postgres_has_yet_to_notice() -> None:
    dead = connection.copy()
    with dead.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(hashtextextended('rebuild of incidents', 0))")
    noticed = threading.Timer(0.3, dead.connection.close)
    noticed.start()
    assert rebuild().incidents == 1
    noticed.join()


def test_progress_is_a_share_of_the_log_a_rate_and_the_time_left() -> None:
    first, now = Progress(100, 0.2, None), Progress(1_100, 0.6, None)
    assert line(first, now, 10.0) == "60% of the log, 1,100 incidents, 100 incidents/s, 10 s left"
    assert line(first, first, 10.0).endswith("0 incidents/s, time left unknown")


def test_commands_on_incidents_that_are_exchanged_lose_nothing(log_database: str) -> None:  # noqa: ARG001
    ids, stop, failures = _several(4), threading.Event(), []

    def write() -> None:
        try:
            while not stop.is_set():
                for id_ in ids:
                    commands.comment(id_, "still here", ALICE)
        except Exception as error:  # noqa: BLE001  (reported by the test below)
            failures.append(error)
        finally:
            connections.close_all()

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(10):
            TimelineEntry.objects.filter(incident__pk=ids[1], version=2).delete()
            EvidenceItem.objects.filter(incident__pk=ids[1]).delete()
            assert set(rebuild().differed) == {ids[1]}
    finally:
        stop.set()
        writer.join()
    assert failures == []
    assert rebuild().differed == ()
    for id_ in ids:
        assert queries.timeline(id_) == timeline_of(read_stream(f"incident/{id_}"))


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
