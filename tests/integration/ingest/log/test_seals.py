"""Seals and `verify_log`: whatever is tampered with is named."""

from __future__ import annotations

import json
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from pytest_django import Settings

from deploy.observability.outside import Notary, note_seals
from incidents.worker.parts import silences
from ingest.log import append, heads, read, seals, types
from ingest.log import verify as checking
from ingest.log.types import Context, Event, EventType, NewEvent
from ingest.log.verify import LogIntegrityError, verify
from ingest.queries import now_utc
from tests.integration.incidents.notifications.cases import HookSink, MailSink

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
ALICE = Context("user:alice")


@pytest.fixture(autouse=True)
def test_types(monkeypatch: pytest.MonkeyPatch, log_database: str) -> str:
    monkeypatch.setattr(types, "_types", dict(types._types))
    types.register(EventType("test.said"))
    return log_database


def say(stream: str, *words: Any) -> list[Event]:
    return append.append(
        stream, [NewEvent("test.said", {"word": word}, NOON) for word in words], read.head(stream), ALICE
    )


@pytest.fixture
def talks() -> list[Event]:
    """Three streams of five events, under two seals."""
    events = [*say("talk/1", *"abcde"), *say("talk/2", *"abcde")]
    seals.seal()
    events += say("talk/3", *"abcde")
    seals.seal()
    return events


def tamper(statement: str, *values: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute("ALTER TABLE log_event DISABLE TRIGGER log_event_append_only")
        cursor.execute(statement, values)
        assert cursor.rowcount > 0
        cursor.execute("ALTER TABLE log_event ENABLE ALWAYS TRIGGER log_event_append_only")


def bad() -> str:
    with pytest.raises(LogIntegrityError) as caught:
        verify()
    return str(caught.value)


@pytest.mark.usefixtures("talks")
def test_an_honest_log_is_sound() -> None:
    sound = verify()
    assert (sound.events, sound.streams, sound.seals) == (17, 4, 2)


def test_an_empty_log_is_sound() -> None:
    assert verify().events == 0


@pytest.mark.usefixtures("talks")
@pytest.mark.parametrize(
    "change",
    [
        "body = '{}'", "type = 'test.sung'", "schema = 2", "actor = 'user:bob'", "cause = 'run/1@1'",
        "trace = 'x'",
        "occurred_at = now()", "recorded_at = now()", "hash = sha256('x')",
    ],
)  # fmt: skip
def test_a_changed_field_names_its_event(change: str) -> None:
    tamper(f"UPDATE log_event SET {change} WHERE stream = 'talk/2' AND version = 3")
    assert bad().startswith("talk/2@3: its content does not match its hash")


@pytest.mark.usefixtures("talks")
def test_an_event_deleted_from_the_middle_is_named() -> None:
    tamper("DELETE FROM log_event WHERE stream = 'talk/2' AND version = 3")
    assert bad() == "talk/2@3: is missing, though talk/2@4 is there"


@pytest.mark.usefixtures("talks")
@pytest.mark.parametrize("kept", [0, 1, 4])
def test_a_cut_tail_is_named_by_the_seal_over_it(kept: int) -> None:
    tamper("DELETE FROM log_event WHERE stream = 'talk/2' AND version > %s", kept)
    assert bad() == "talk/2@5: is missing, though log@1 sealed it"


def test_a_tail_that_was_written_anew_is_named(talks: list[Event]) -> None:
    old = talks[4]
    body = '{"word":"forged"}'
    times = types.time_text(old.occurred_at), types.time_text(old.recorded_at)
    forged = types.chain(
        talks[3].hash, "talk/1", 5, old.type, 1, body, old.actor, old.cause, old.trace, *times
    )
    tamper("UPDATE log_event SET body = %s, hash = %s WHERE stream = 'talk/1' AND version = 5", body, forged)
    assert bad() == "talk/1@5: was rewritten after log@1 sealed it"


def test_an_event_smuggled_into_the_past_is_named(talks: list[Event]) -> None:
    (late,) = say("talk/2", "late")
    early = talks[5].position
    tamper("UPDATE log_event SET txid = %s::xid8, seq = 0 WHERE seq = %s", str(early.txid), late.position.seq)
    assert bad() == "talk/2@6: was put among events that log@1 had sealed"


def test_a_changed_order_is_noticed(talks: list[Event]) -> None:
    position = talks[-1].position
    tamper("UPDATE log_event SET txid = %s::xid8 WHERE stream = 'talk/2' AND version = 5", str(position.txid))
    assert bad().startswith("talk/2@5: is missing, though log@1 sealed it")


@pytest.mark.usefixtures("talks")
def test_a_seal_taken_out_of_the_middle_is_named() -> None:
    tamper("DELETE FROM log_event WHERE stream = 'log' AND version = 1")
    assert bad() == "log@1: is missing, though log@2 is there"


@pytest.mark.usefixtures("talks")
def test_a_cut_tail_of_seals_is_named_when_the_newest_was_noted() -> None:
    noted = verify().newest_seal
    tamper("DELETE FROM log_event WHERE stream = 'log' AND version = 2")
    with pytest.raises(LogIntegrityError, match="log@2: is missing, though it was noted earlier"):
        verify(noted)


@pytest.mark.usefixtures("talks")
def test_a_noted_seal_that_is_still_there_is_fine() -> None:
    noted = verify().newest_seal
    say("talk/1", "more")
    seals.seal()
    assert verify(noted).seals == 3


@pytest.mark.usefixtures("talks")
def test_sealing_again_without_news_records_nothing() -> None:
    assert seals.seal() == []


def test_a_long_stretch_is_cut_into_several_seals(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "COVER", 4)
    say("talk/1", *range(10))
    assert [event.body["events"] for event in seals.seal()] == [4, 4, 2]
    assert verify().seals == 3


def test_seals_of_a_long_stretch_do_not_hide_the_events_after_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seals, "COVER", 3)
    say("talk/1", *range(9))
    assert len(seals.seal()) == 3
    (late,) = say("talk/1", "late")
    assert seals.unsealed_since() == late.recorded_at
    assert [event.body["events"] for event in seals.seal()] == [3, 1]
    assert seals.unsealed_since() is None
    assert verify().seals == 5


def test_each_seal_begins_where_the_one_before_ends(talks: list[Event]) -> None:
    first, second = read.read_stream("log")
    assert second.body["from"] == first.body["upto"] == str(talks[9].position)
    assert second.body["previous"] == "log@1"


@pytest.mark.usefixtures("talks")
def test_the_command_says_that_the_log_is_sound(capsys: pytest.CaptureFixture[str]) -> None:
    call_command("verify_log", "--without-seals")
    assert "Sound: 17 events in 4 streams, 2 seals." in capsys.readouterr().out


@pytest.mark.usefixtures("talks")
def test_the_command_fails_with_the_name_of_the_first_bad_event() -> None:
    tamper("UPDATE log_event SET body = '{}' WHERE stream = 'talk/1' AND version = 2")
    with pytest.raises(CommandError, match=r"The log is not sound\. talk/1@2: ") as caught:
        call_command("verify_log")
    assert caught.value.returncode == 1


@pytest.fixture
def outside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File in which seals are noted; nothing may be older than a moment without one."""
    monkeypatch.setattr(checking, "UNSEALED", 0.0)
    return tmp_path / "seals.jsonl"


def cut_after(seal: int) -> None:
    """As who owns the database can: the events after a seal, and with them the newer seals and the heads."""
    upto = read.read_stream("log")[seal - 1].position
    tamper(
        "DELETE FROM log_event WHERE (epoch, txid, seq) > (%s, %s::xid8, %s)",
        upto.epoch,
        str(upto.txid),
        upto.seq,
    )
    heads.rebuild_heads()


@pytest.mark.usefixtures("talks")
def test_a_log_whose_newest_seal_is_noted_outside_is_sound(outside: Path) -> None:
    Notary(outside, []).step()
    assert verify(noted_in=outside).seals == 2


@pytest.mark.usefixtures("talks")
def test_a_tail_that_was_cut_with_its_seals_is_noticed(outside: Path) -> None:
    Notary(outside, []).step()
    cut_after(1)
    assert verify().seals == 1
    with pytest.raises(LogIntegrityError, match="log@2: is missing, though it was noted earlier"):
        verify(noted_in=outside)
    with pytest.raises(LogIntegrityError, match="log@2: is missing"):
        Notary(outside, []).step()


@pytest.mark.usefixtures("talks")
def test_a_log_that_was_emptied_is_noticed(outside: Path) -> None:
    Notary(outside, []).step()
    tamper("DELETE FROM log_event WHERE true")
    heads.rebuild_heads()
    assert verify().events == 0
    with pytest.raises(LogIntegrityError, match="log@2: is missing"):
        verify(noted_in=outside)


@pytest.mark.usefixtures("talks")
def test_seals_that_were_never_noted_are_not_enough(outside: Path) -> None:
    with pytest.raises(LogIntegrityError, match="talk/1@1: is not covered by any seal noted outside"):
        verify(noted_in=outside)


@pytest.mark.usefixtures("talks")
def test_events_that_no_noted_seal_covers_are_named(outside: Path) -> None:
    Notary(outside, []).step()
    say("talk/4", "late")
    with pytest.raises(
        LogIntegrityError, match=r"talk/4@1: is not covered by any seal .*the newest seal in .* is log@2"
    ):
        verify(noted_in=outside)


@pytest.mark.usefixtures("talks")
def test_a_line_that_a_crash_cut_is_passed_over(outside: Path) -> None:
    Notary(outside, []).step()
    with outside.open("a") as file:
        file.write('{"noted_at": "20')
    assert verify(noted_in=outside).seals == 2


@pytest.mark.usefixtures("talks")
def test_a_seal_is_noted_once_and_sent_once_to_each_address(
    outside: Path, hooks: HookSink, mails: MailSink
) -> None:
    notary = Notary(outside, [hooks.url, "alice@example.org"])
    for _ in range(3):
        notary.step()
    (seal,) = [json.loads(line)["seal"] for line in outside.read_text().splitlines()]
    assert [body["seal"] for _, body in hooks.taken] == [seal]
    assert mails.subjects == ["Dossier: seal of the log"]


class OneRound(threading.Event):
    """Ends a loop at its first pause."""

    def wait(self, _timeout: float | None = None) -> bool:
        self.set()
        return True


@pytest.mark.usefixtures("talks")
def test_a_log_that_nobody_seals_is_noticed(
    outside: Path, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.SEAL_FILE = outside
    later = now_utc() + timedelta(minutes=11)
    note_seals(OneRound())
    monkeypatch.setattr("deploy.observability.outside.now_utc", lambda: later)
    note_seals(OneRound())
    assert silences(later)["seals"] < 60  # every event has its seal, however old they are
    say("talk/4", "a")
    monkeypatch.setattr("deploy.observability.outside.now_utc", lambda: later + timedelta(minutes=2))
    note_seals(OneRound())
    assert silences(later + timedelta(minutes=2))["seals"] == 120
