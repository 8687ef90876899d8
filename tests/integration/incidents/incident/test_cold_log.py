"""Pages, the API, the past of an incident, evidence files and the rebuild of read models are the same when old parts of
the log lie in files."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from django.core.management import call_command
from django.db import connection
from django.test import Client
from pytest_django import Settings

from analyzers.queries import runs
from incidents import commands
from incidents.alerts.receipts import outcomes_of
from incidents.incident import rebuild as rebuilding
from incidents.incident.models import IncidentRow, TimelineEntry
from incidents.incident.rebuild import checksums, rebuild
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.api import keys
from ingest.db.storage import ColdStorageError
from ingest.integrations.normalized import Parsed
from ingest.log import cold, parts, seals, source
from ingest.log.move import move_old
from ingest.log.read import read_all
from ingest.log.types import Context, Position
from tests.integration.analyzers.runs.test_evidence_file import an_incident, printed
from tests.integration.frontend.test_pages import signed_in
from tests.integration.incidents.alerts.test_correlate import alert, send

ALICE = Context("user:alice")
TOGETHER = 4
"""Events of a row group, and incidents of a rebuild's transaction: each has several."""


def draw(number: int) -> None:
    """Let the next event have this number."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT setval('log_event_number', %s, false)", (number,))


def full(part: int) -> None:
    """Fill the log up to the begin of a part; the two events before it are still to come."""
    draw(part * parts.SIZE - 2)


def moved() -> None:
    """All full parts but one into files, and out of Postgres."""
    now = datetime.now(UTC)
    parts.maintain()
    seals.seal()
    move_old(now)
    move_old(now + source.READERS_GONE_AFTER + timedelta(minutes=1))
    assert source.hot_from() == 2 * parts.SIZE


@pytest.fixture(autouse=True)
def files(
    log_database: str,  # noqa: ARG001
    tmp_path: Path,
    settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[None]:
    monkeypatch.setattr(cold, "GROUP", TOGETHER)
    monkeypatch.setattr(cold, "STREAMS_GROUP", TOGETHER)
    monkeypatch.setattr(rebuilding, "TOGETHER", TOGETHER)
    settings.TELEMETRY_COLD, settings.LOG_HOT = str(tmp_path / "cold"), 1
    source.forget()
    yield
    source.forget()


@pytest.fixture
def log(files: None) -> None:  # noqa: ARG001
    """Incidents of alerts and of people, with events in four parts."""
    send(alert("disk1"), alert("disk2"), alert("fan1", group="Hot"))
    full(1)
    send(alert("disk3"), alert("disk1", "resolved"))
    for number in range(6):
        commands.open_incident(commands.Report(f"Disks {number} fail"), ALICE)
    commands.set_severity(ids()[0], "critical", ALICE)
    parts.maintain()
    full(2)
    for place in (0, 1, 4):
        commands.comment(ids()[place], 'C:\\logs\t"é"\nbelow', ALICE)
    parts.maintain()
    full(3)
    commands.comment(ids()[0], "again", ALICE)
    commands.resolve(ids()[3], "none", "cables", ALICE)
    commands.comment(ids()[0], "and again", ALICE)


@pytest.fixture
def verdict(files: None) -> int:  # noqa: ARG001
    """Number of an incident that an analyzer opened, with events in the first part."""
    return an_incident()


def ids() -> list[str]:
    return [str(pk) for pk in IncidentRow.objects.order_by("number").values_list("pk", flat=True)]


def everything(reader: Client, alice: Client) -> dict[str, str]:
    """By address, what pages and the API show; the present first, then moments of the past."""
    places = [event.position for event in read_all(Position.START, 1000)]
    addresses = [
        "/api/v1/incidents",
        *(f"/api/v1/incidents/1{part}" for part in ("", "/events", "/evidence", "/similar")),
        *(f"/api/v1/runs/{run.id}" for run in runs()),
        "/api/v1/alert_rules",
        "/inbox.csv",
    ]
    for place in places[4::13]:
        addresses += [f"/?as_of={place}", f"/api/v1/incidents?as_of={place}"]
        for number in (1, 2, 5):
            past = f"{number}?as_of={place}"
            addresses += [f"/incidents/{past}", f"/api/v1/incidents/{past}"]
            addresses += [f"/incidents/{number}/details?as_of={place}"]
    found = dict[str, str]()
    for address in addresses:
        response = (reader if address.startswith("/api") else alice).get(address)
        text = response.content if not response.streaming else b"".join(response)
        found[address] = f"{response.status_code} {_constant(text.decode())}"
    return found


def _constant(text: str) -> str:
    """Without the time and the tokens of the request, and without the operator's banner about followers, of which none
    runs here."""
    text = re.sub(r'(<input type="datetime-local"[^>]*?) value="[^"]*"', r"\1", text)
    text = re.sub(r'<div class="operator".*?</div>', "", text, flags=re.DOTALL)
    text = re.sub(r'(csrf[^>]*?|token=|nonce=")[\w.:=-]{20,}', r"\1", text)
    text = re.sub(r"as printed [\d: -]{19} UTC", "", text)
    return re.sub(r'"(start|end|since)":"[^"]*"', "", text)


@pytest.mark.usefixtures("verdict", "log")
def test_pages_and_the_api_show_the_same_over_files() -> None:
    alice = signed_in("alice", is_staff=True)
    reader = Client(headers={"Authorization": f"Bearer {keys.create('reader', ['incidents:read', 'admin'])}"})
    before = everything(reader, alice)
    assert sum(answer.startswith("200 ") for answer in before.values()) > 25
    moved()
    after = everything(reader, alice)
    assert [address for address in before if before[address] != after[address]] == []


@pytest.mark.usefixtures("log")
def test_a_rebuild_over_files_finds_nothing_to_correct() -> None:
    before = checksums(ids())
    moved()
    found = rebuild()
    assert (found.differed, found.incidents, len(ids())) == ((), 8, 8)
    assert checksums(ids()) == before


@pytest.mark.usefixtures("log")
def test_a_rebuild_over_files_corrects_what_was_changed_and_brings_back_what_was_dropped() -> None:
    known, before = ids(), checksums(ids())
    changed, dropped = known[:2]
    moved()
    TimelineEntry.objects.filter(incident__pk=changed).update(text="tampered")
    IncidentRow.objects.filter(pk=dropped).delete()
    assert set(rebuild().differed) == {changed, dropped}
    assert (ids(), checksums(known)) == (known, before)


@pytest.mark.usefixtures("log")
def test_a_rebuild_does_not_take_a_lost_file_for_incidents_without_events(tmp_path: Path) -> None:
    before = checksums(ids())
    moved()
    cold._file_in.cache_clear()
    cold._group.cache_clear()
    for path in (tmp_path / "cold").rglob("*.parquet"):
        path.rename(path.with_suffix(".away"))
    with pytest.raises(ColdStorageError, match="cannot be read"):
        rebuild()
    assert checksums(ids()) == before
    for path in (tmp_path / "cold").rglob("*.away"):
        path.rename(path.with_suffix(".parquet"))
    assert rebuild().differed == ()


@pytest.mark.usefixtures("log")
def test_a_receipt_of_an_old_alert_does_not_look_into_parts_before_its_delivery(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    parsed = Parsed((alert("disk1"), alert("fan1", "resolved", group="Hot")))
    receipt = receive(parsed, Delivery("prometheus", "test", "text/plain", b"")).receipt
    before = outcomes_of(receipt)
    moved()
    reading, looked = cold.of_streams, list[str]()

    def noted(file: str, columns: Sequence[str], streams: Sequence[str], *rest: Any) -> list[cold.Row]:
        looked.extend(streams)
        return reading(file, columns, streams, *rest)

    monkeypatch.setattr(cold, "of_streams", noted)
    assert before is not None
    assert [event["id"].partition("@")[2] for event in before[1]["events"]] == ["3", "2"]
    assert outcomes_of(receipt) == before
    assert [stream for stream in looked if stream.startswith("alert/")] == []


@pytest.mark.usefixtures("verdict", "log")
def test_evidence_out_of_files_is_what_it_was_and_checks(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def exported(name: str) -> tuple[Path, Any]:
        file = tmp_path / name
        call_command("export_evidence", "1", str(file))
        return file, json.loads(base64.b64decode(json.loads(file.read_bytes())["payload"]))

    seals.seal()
    early, before = exported("before.json")
    moved()
    late, after = exported("after.json")
    assert [one["recorded"]["event"] for one in after["judged"]] == [
        one["recorded"]["event"] for one in before["judged"]
    ]
    assert after["windows"] == before["windows"]
    for file in (early, late):
        code, said = printed(capsys, str(file))
        assert (code, "the same bytes" in said, "WRONG" in said) == (0, True, False), said
