"""The log moves house: dumped, restored into another cluster, and life goes on."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import pytest
from django.db import connection

from deploy.embedded import Home, _postgres_binaries, start_postgres, stop
from ingest.log import append, read, seals, types
from ingest.log.read import Follower, run_once
from ingest.log.types import Context, Event, EventType, NewEvent, Position
from ingest.log.verify import verify

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)
Move = Callable[[], None]


@pytest.fixture(autouse=True)
def test_types(monkeypatch: pytest.MonkeyPatch, log_database: str) -> str:
    monkeypatch.setattr(types, "_types", dict(types._types))
    types.register(EventType("test.said"))
    return log_database


@pytest.fixture
def second_cluster(tmp_path_factory: pytest.TempPathFactory, home: Home) -> Iterator[Home]:  # noqa: ARG001
    second = Home(home.root / "second")
    process = start_postgres(second, settings={"fsync": "off", "autovacuum": "off"})
    yield second
    connection.close()
    stop(process)
    second.forget()


@pytest.fixture
def move(log_database: str, second_cluster: Home, tmp_path: Path) -> Iterator[Move]:
    """Dump the database, restore it into the second cluster and have Django go there."""
    binaries, dump = _postgres_binaries(), tmp_path / "log.dump"
    settings, before = connection.settings_dict, dict(connection.settings_dict)

    def go() -> None:
        connection.close()
        subprocess.run([binaries / "pg_dump", "-Fc", "-f", dump, log_database], check=True)
        address = ["-h", str(second_cluster.run), "-U", "dossier", "-d", "dossier"]
        subprocess.run([binaries / "pg_restore", "--exit-on-error", *address, dump], check=True)
        settings.update(HOST=str(second_cluster.run), NAME="dossier")

    assert parse_qs(urlsplit(log_database).query)["host"] != [str(second_cluster.run)]
    yield go
    connection.close()
    settings.update(before)


def say(*words: str) -> list[Event]:
    new = [NewEvent("test.said", {"word": word}, NOON) for word in words]
    return append.append("talk/1", new, read.head("talk/1"), Context("user:alice"))


def far_ahead() -> None:
    """Let transaction ids run ahead of what a fresh cluster begins with."""
    with connection.cursor() as cursor:
        cursor.execute(
            "DO $$ BEGIN FOR i IN 1..5000 LOOP PERFORM pg_current_xact_id(); COMMIT; END LOOP; END $$"
        )


def test_order_survives_a_move_to_a_cluster_with_smaller_transaction_ids(move: Move) -> None:
    far_ahead()
    old = say("a", "b")
    move()
    new = say("c", "d")
    assert new[0].position.txid < old[0].position.txid
    assert read.read_all(Position.START, 10) == [*old, *new]


def test_a_follower_goes_on_after_a_move_without_skipping_or_repeating(move: Move) -> None:
    heard: list[str] = []
    follower = Follower(
        "scribe", frozenset({"test.said"}), lambda es: heard.extend(e.body["word"] for e in es)
    )
    far_ahead()
    say("a", "b", "c")
    run_once(follower, limit=2)
    move()
    say("d")
    while run_once(follower, limit=2):
        pass
    assert heard == ["a", "b", "c", "d"]


def test_positions_given_out_before_a_move_keep_their_meaning(move: Move) -> None:
    far_ahead()
    old = say("a", "b")
    mark = read.watermark()
    move()
    say("c")
    assert read.read_all(Position.START, 10, upto=mark) == old


def test_a_moved_log_is_sound_and_goes_on_being_sealed(move: Move) -> None:
    far_ahead()
    say("a", "b")
    seals.seal()
    move()
    say("c")
    seals.seal()
    assert verify().seals == 2
