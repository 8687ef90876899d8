"""`verify_log` beyond the chains: audit entries and telemetry receipts, events dated back, what it cannot know."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test import Client
from pytest_django import Settings

from deploy.observability.outside import Notary
from incidents.audit import follower
from incidents.incident.rebuild import rebuild
from ingest.api import keys
from ingest.commands import record_configuration
from ingest.db import database
from ingest.log import append, read, seals, types
from ingest.log import verify as checking
from ingest.log.types import Context, Event, EventType, NewEvent
from ingest.log.verify import LogIntegrityError, verify
from tests.following import follow_to_the_end

pytestmark = pytest.mark.usefixtures("log_database")
ALICE = Context("user:alice")


def change(table: str, statement: str, *values: Any) -> None:
    """As who owns the database can."""
    with connection.cursor() as cursor:
        if table == "log_event":
            cursor.execute("ALTER TABLE log_event DISABLE TRIGGER log_event_append_only")
        cursor.execute(statement, values)
        assert cursor.rowcount > 0
        if table == "log_event":
            cursor.execute("ALTER TABLE log_event ENABLE ALWAYS TRIGGER log_event_append_only")


def bad() -> str:
    with pytest.raises(LogIntegrityError) as caught:
        verify()
    return str(caught.value)


@pytest.fixture
def audit() -> list[str]:
    """Three entries; the ids of their events."""
    for number in range(3):
        record_configuration("lamp", f"l{number}", None, {"watts": number}, ALICE)
    follow_to_the_end(follower.FOLLOWER)
    return [f"configuration/lamp/l{number}@1" for number in range(3)]


@pytest.fixture
def receipts() -> list[str]:
    """Two receipts of telemetry; the ids of their events."""
    client = Client(headers={"Authorization": f"Bearer {keys.create('feeder', ['telemetry'])}"})
    at = datetime.now(UTC) - timedelta(minutes=1)
    found = []
    for number in range(2):
        row = f'{{"time": "{at.isoformat()}", "unit": "vm/{number}"}}\n'
        answer = client.post("/api/v1/telemetry/unit_failure", row, content_type="application/x-ndjson")
        found.append(f"receipt/{answer.json()['receipt']}@1")
    follow_to_the_end(follower.FOLLOWER)
    return found


def test_entries_that_equal_their_events_are_counted(audit: list[str], receipts: list[str]) -> None:
    del audit, receipts
    assert verify().copies == {
        "audit entries": 3,
        "heads of streams": 5,
        "telemetry receipts": 2,
        "status notices": 0,
    }


def test_entries_that_the_follower_has_not_made_yet_are_not_missing(audit: list[str]) -> None:
    del audit
    record_configuration("lamp", "late", None, {"watts": 9}, ALICE)
    assert verify().copies["audit entries"] == 3


def test_a_deleted_audit_entry_is_named(audit: list[str]) -> None:
    change("audit_change", "DELETE FROM audit_change WHERE key = 'l1'")
    assert bad() == f"{audit[1]}: has no audit entry any more"


@pytest.mark.parametrize(
    ("field", "value"),
    [("actor", "'user:bob'"), ("before", "'{}'"), ("after", "'{\"watts\": 9}'"), ("at", "now()")],
)
def test_an_edited_audit_entry_is_named_with_the_field(audit: list[str], field: str, value: str) -> None:
    change("audit_change", f"UPDATE audit_change SET {field} = {value} WHERE key = 'l1'")
    assert bad() == f"{audit[1]}: has an audit entry that says something else: {field}"


@pytest.mark.parametrize("position", ["0001" + "0" * 32, "f" * 36])
def test_an_audit_entry_without_an_event_is_named(audit: list[str], position: str) -> None:
    del audit
    change(
        "audit_change",
        "INSERT INTO audit_change (position, kind, key, actor, at) VALUES (%s, 'lamp', 'x', 'user:bob', now())",
        position,
    )
    assert "(lamp x by user:bob) stands for no event of the log" in bad()


def test_the_audit_is_rebuilt_from_the_log(audit: list[str]) -> None:
    del audit
    change("audit_change", "DELETE FROM audit_change WHERE key = 'l1'")
    change("audit_change", "UPDATE audit_change SET actor = 'user:bob' WHERE key = 'l2'")
    assert rebuild().differed == ("audit entries",)
    assert verify().copies["audit entries"] == 3
    assert rebuild().differed == ()


def test_a_deleted_receipt_is_named(receipts: list[str]) -> None:
    change("", "DELETE FROM telemetry_receipt WHERE 'receipt/' || receipt || '@1' = %s", receipts[1])
    assert bad().startswith(f"{receipts[1]}: has no telemetry receipt, though retention keeps it")


def test_a_receipt_that_retention_dropped_is_not_missing(receipts: list[str], settings: Settings) -> None:
    change("", "DELETE FROM telemetry_receipt WHERE 'receipt/' || receipt || '@1' = %s", receipts[0])
    settings.TELEMETRY_RETENTION = settings.TELEMETRY_SPARSE_RETENTION = -timedelta(hours=2)
    assert verify().copies["telemetry receipts"] == 1


@pytest.mark.parametrize(
    "edit",
    ["rows = 7", "kind = 'path_outcome'", "region = -1", "first = now()", "last = now()", "received_at = now()",
     "receipt = gen_random_uuid()"],
)  # fmt: skip
def test_an_edited_receipt_is_named(receipts: list[str], edit: str) -> None:
    change("", f"UPDATE telemetry_receipt SET {edit} WHERE 'receipt/' || receipt || '@1' = %s", receipts[1])
    assert bad() == f"{receipts[1]}: has a receipt that says something else"


def test_a_receipt_without_an_event_is_named(receipts: list[str]) -> None:
    del receipts
    change(
        "",
        "INSERT INTO telemetry_receipt SELECT 999, gen_random_uuid(), kind, region, rows, first, last, received_at,"
        " epoch, txid, seq + 1000 FROM telemetry_receipt LIMIT 1",
    )
    assert bad() == "telemetry receipt 999: stands for no event of the log"


def test_an_emptied_log_is_noticed_by_what_stands_beside_it(audit: list[str]) -> None:
    del audit
    change("log_event", "DELETE FROM log_event WHERE true")
    assert "stands for no event of the log" in bad()


# --- when events say they were -------------------------------------------------------------------


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(types, "_types", dict(types._types))
    types.register(EventType("test.said"))


def say(
    monkeypatch: pytest.MonkeyPatch, stream: str, recorded: timedelta, happened: timedelta | None = None
) -> Event:
    """An event that pretends to have been recorded at another time, chained as who knows how can do it."""
    now = datetime.now(UTC)
    with monkeypatch.context() as other:
        other.setattr(database, "now", lambda: now + recorded)
        at = now + (recorded if happened is None else happened)
        (event,) = append.append(stream, [NewEvent("test.said", {"word": "a"}, at)], read.head(stream), ALICE)
    return event


HONEST, BACK, AHEAD = timedelta(0), -timedelta(days=21), timedelta(hours=1)


@pytest.mark.usefixtures("said")
def test_honest_times_are_not_remarked_on(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "talk/1", -timedelta(days=30))  # long ago, before the first seal
    seals.seal()
    say(monkeypatch, "talk/2", -timedelta(minutes=5))  # a long transaction
    seals.seal()
    assert verify().remarks == []


@pytest.mark.usefixtures("said")
@pytest.mark.parametrize("is_sealed", [True, False])
def test_an_event_that_pretends_to_have_been_recorded_earlier_is_shown(
    monkeypatch: pytest.MonkeyPatch, is_sealed: bool
) -> None:
    say(monkeypatch, "talk/1", HONEST)
    seals.seal()
    say(monkeypatch, "talk/2", BACK)
    if is_sealed:
        seals.seal()
    (remark,) = verify().remarks
    assert remark.startswith("talk/2@1 says that it was recorded at ")
    assert remark.endswith("it was dated back")


@pytest.mark.usefixtures("said")
def test_an_event_dated_ahead_of_its_seal_is_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "talk/1", AHEAD)
    seals.seal()
    (remark,) = verify().remarks
    assert remark.startswith("talk/1@1 ")
    assert remark.endswith("it was dated ahead")


@pytest.mark.usefixtures("said")
def test_events_that_say_they_happened_long_before_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    say(monkeypatch, "talk/1", HONEST, -timedelta(days=2))
    say(monkeypatch, "talk/2", HONEST, BACK)
    (remark,) = verify().remarks
    assert remark.startswith("2 of test.said say that they happened more than 24 h before they were recorded")
    assert remark.endswith("the most 21 d: talk/2@1")


# --- what the command says ------------------------------------------------------------------------


def test_the_command_fails_for_an_emptied_log_whose_seals_were_noted(
    tmp_path: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SEAL_FILE = tmp_path / "seals.jsonl"
    record_configuration("lamp", "l", None, {"watts": 1}, ALICE)
    seals.seal()
    Notary(settings.SEAL_FILE, []).step()
    change("log_event", "DELETE FROM log_event WHERE true")
    monkeypatch.setattr(checking, "UNSEALED", 0.0)
    with pytest.raises(
        CommandError, match=r"log@1: is missing, though it was noted earlier in .*replaced on purpose"
    ):
        call_command("verify_log")


def test_the_command_says_what_it_cannot_know_without_noted_seals(
    tmp_path: Path, settings: Settings, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.SEAL_FILE = tmp_path / "seals.jsonl"
    call_command("verify_log")
    told = capsys.readouterr().out
    assert "Sound: 0 events" in told
    assert (
        f"No seal stands in {settings.SEAL_FILE}: a log that was cut or emptied would look the same." in told
    )


def test_the_command_refuses_a_file_of_seals_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(CommandError, match="There is no file"):
        call_command("verify_log", "--seals", str(tmp_path / "other"))
