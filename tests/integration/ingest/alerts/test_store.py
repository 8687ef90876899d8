"""Alerts on a real Postgres: what is stored, what is only counted, and what many senders do at once."""

from __future__ import annotations

import json
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import UTC, datetime, timedelta
from typing import Any

import psycopg2
import pytest
from django.db import connections

from ingest.alerts import decide, deliveries, rows, store
from ingest.alerts.deliveries import Delivery, DeliveryReceipt, prepare
from ingest.alerts.expire import expire
from ingest.alerts.rows import CurrentAlert, current_alerts
from ingest.alerts.store import Batch, By, receive
from ingest.integrations import prometheus
from ingest.integrations.normalized import Alert, Parsed, Refused
from ingest.log.types import Context, StreamVersionError
from ingest.log.verify import verify
from ingest.queries import Event, Position, read_all, read_stream

pytestmark = pytest.mark.usefixtures("log_database")
NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


def send(
    *alerts: Alert, integration: str = "prometheus", refused: tuple[Refused, ...] = ()
) -> DeliveryReceipt:
    return receive(Parsed(alerts, refused), Delivery(integration, "test", "application/json", b"as it came"))


def alert(key: str = "disk7", status: Any = "firing", **more: Any) -> Alert:
    return Alert(key, status, more.pop("title", "Disk is slow"), **more)


def outcomes(taken: DeliveryReceipt) -> list[str]:
    return [told.outcome for told in taken.outcomes]


def events() -> list[Event]:
    return read_all(Position.START, 10_000, {"alert.reported"})


def row(key: str = "disk7") -> CurrentAlert:
    (found,) = current_alerts("key = %s", (key,))
    return found


def test_a_new_alert_is_an_event_in_a_stream_of_its_own() -> None:
    (told,) = send(alert(component="disk/d7", labels={"rack": "r1"})).outcomes
    (event,) = read_stream(f"alert/{told.alert}")
    assert (event.body["change"], event.body["status"], event.actor) == ("fired", "firing", "key:prometheus")
    assert (event.body["component"], event.body["labels"]) == ("disk/d7", {"rack": "r1"})


def test_a_repeat_is_counted_and_costs_no_event() -> None:
    taken = [send(alert(), alert()), send(alert())]
    assert [outcomes(one) for one in taken] == [["fired", "repeated"], ["repeated"]]
    assert (row().repeats, len(events())) == (2, 1)


def test_an_alert_that_was_resolved_fires_again() -> None:
    said = [outcomes(send(alert(status=status))) for status in ("firing", "resolved", "resolved", "firing")]
    assert said == [["fired"], ["resolved"], ["repeated"], ["fired"]]
    assert [(e.body["change"], e.body["fired"], e.version) for e in events()] == [
        ("fired", 1, 1),
        ("resolved", 1, 2),
        ("fired", 2, 3),
    ]


def test_several_changes_in_one_delivery_are_as_many_events() -> None:
    taken = send(alert(), alert(status="resolved"), alert(severity="critical"), alert("disk8"))
    assert outcomes(taken) == ["fired", "resolved", "fired", "fired"]
    assert [told.version for told in taken.outcomes] == [1, 2, 3, 1]
    assert (row().status, row().alert.severity) == ("firing", "critical")
    assert verify().events == 4


def test_the_same_key_of_another_integration_is_another_alert() -> None:
    send(alert(), integration="one")
    assert outcomes(send(alert(status="resolved"), integration="two")) == ["ignored"]
    assert outcomes(send(alert(), integration="two")) == ["fired"]


def test_a_late_duplicate_does_not_fire_what_was_resolved() -> None:
    """Two Alertmanagers that stand in for each other both deliver, one of them late."""
    send(alert(starts_at=NOON), alert(status="resolved", starts_at=NOON))
    assert outcomes(send(alert(starts_at=NOON))) == ["ignored"]
    assert outcomes(send(alert(starts_at=NOON + timedelta(minutes=1)))) == ["fired"]


def test_what_prometheus_goes_on_to_say_fires_again_though_a_late_post_had_ended_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    start, now = datetime.now(UTC) - timedelta(hours=1), datetime.now(UTC)

    def post(ends: datetime) -> list[str]:
        told = {"labels": {"alertname": "Down"}, "startsAt": start.isoformat(), "endsAt": ends.isoformat()}
        return outcomes(send(*prometheus.alerts(json.dumps([told]).encode(), now).alerts))

    assert post(now + timedelta(minutes=4)) == ["fired"]
    assert post(now - timedelta(minutes=1)) == ["resolved"]
    assert post(now + timedelta(minutes=4)) == ["ignored"]  # by one that stands in for it, a moment late
    monkeypatch.setattr(decide, "LATE", timedelta(0))
    assert post(now + timedelta(minutes=4)) == ["fired"]


def test_the_end_of_an_earlier_firing_does_not_end_the_later_one() -> None:
    send(alert(starts_at=NOON))
    assert outcomes(send(alert(status="resolved", starts_at=NOON - timedelta(hours=1)))) == ["ignored"]


def test_an_alert_that_gets_worse_is_an_event_and_stays_acknowledged() -> None:
    send(alert(), alert(status="acknowledged"))
    assert outcomes(send(alert(severity="critical"))) == ["severity"]
    assert (row().status, row().alert.severity) == ("acknowledged", "critical")


def test_what_its_sender_no_longer_repeats_is_resolved_once_its_time_is_over() -> None:
    now = datetime.now(UTC)
    send(alert(expires_at=now + timedelta(minutes=4)), alert("other"))
    assert expire(now + timedelta(minutes=3)) == 0
    assert expire(now + timedelta(minutes=5)) == 1
    assert (row().status, row().expired, row("other").status) == ("resolved", True, "firing")
    assert [(e.body["change"], e.body["receipt"], e.actor) for e in events()][-1] == (
        "expired",
        None,
        "system:alerts",
    )


def test_a_sender_that_speaks_again_fires_again_what_expired() -> None:
    now = datetime.now(UTC)
    send(alert(starts_at=NOON, expires_at=now))
    expire(now + timedelta(minutes=1))
    assert outcomes(send(alert(starts_at=NOON))) == ["fired"]


def test_a_repeat_puts_the_end_off() -> None:
    now = datetime.now(UTC)
    send(alert(expires_at=now + timedelta(minutes=1)))
    send(alert(expires_at=now + timedelta(minutes=9)))
    assert expire(now + timedelta(minutes=5)) == 0


def test_a_receipt_tells_what_became_of_each_alert() -> None:
    taken = send(alert(), alert("x", "resolved"), refused=(Refused(2, "labels", "must not be empty"),))
    found = deliveries.delivered(taken.receipt)
    assert found is not None
    assert (found.payload, found.refused) == (b"as it came", ((2, "labels", "must not be empty"),))
    assert [(fate.outcome, fate.version, fate.why) for fate in found.fates] == [
        ("fired", 1, ""),
        ("ignored", 0, "it was not firing"),
    ]


def test_sixty_four_senders_at_once_fire_an_alert_once() -> None:
    def post(number: int) -> list[str]:
        try:
            return outcomes(send(alert(), alert(f"own {number}")))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(64) as pool:
        said = Counter(outcome for taken in pool.map(post, range(64)) for outcome in taken)
    assert said == {"fired": 65, "repeated": 63}
    assert (row().repeats, len(events())) == (63, 65)


def test_senders_that_fire_and_resolve_at_once_leave_a_sound_log() -> None:
    def post(number: int) -> None:
        try:
            keys = [f"k{(number + place) % 5}" for place in range(5)]
            send(
                *(
                    alert(key, "firing" if (number + place) % 2 else "resolved")
                    for place, key in enumerate(keys)
                )
            )
        finally:
            connections.close_all()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(post, range(120)))
    assert verify().events == len(events())
    for one in current_alerts("true", ()):
        last = read_stream(f"alert/{one.id}")[-1]
        assert last.body["status"] == one.status


def test_payloads_older_than_their_retention_are_dropped() -> None:
    taken = send(alert())
    now = datetime.now(UTC)
    assert deliveries.maintain(now)["made"] == 2
    assert deliveries.maintain(now) == {"made": 0, "dropped": 0}
    deliveries.maintain(now + timedelta(days=29))
    assert deliveries.delivered(taken.receipt) is not None
    assert deliveries.maintain(now + timedelta(days=33))["dropped"] == 2
    assert deliveries.delivered(taken.receipt) is None


def test_partitions_wait_for_no_reader_and_make_no_sender_wait(
    log_database: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(deliveries, "PATIENCE", "100ms")
    now, old = datetime.now(UTC), datetime.now(UTC) + timedelta(days=33)
    deliveries.maintain(now)
    with closing(psycopg2.connect(log_database)) as dump, dump.cursor() as cursor:
        # As pg_dump does, for as long as it runs; whoever waits for it holds up the readers of the log.
        cursor.execute("SELECT count(*) FROM alert_delivery")
        began = time.monotonic()
        assert deliveries.maintain(old) == {"made": 0, "dropped": 0}
        assert time.monotonic() - began < 5
        dump.rollback()
    assert deliveries.maintain(old) == {"made": 2, "dropped": 2}


def test_what_changed_between_reading_and_writing_makes_the_write_fail_and_writes_nothing() -> None:
    (told,) = send(alert()).outcomes
    now = datetime.now(UTC)
    for repeats in (alert(), alert(status="resolved")):  # one that would be counted, one that would change it
        batch = Batch(now, rows.existing([told.alert], hold=False), held=False)
        _take_into(batch, told.alert, repeats)
        send(alert(status="resolved" if row().status == "firing" else "firing"))
        before = (row().repeats, len(events()))
        with pytest.raises(StreamVersionError):
            batch.write()
        assert (row().repeats, len(events())) == before


def _take_into(batch: Batch, id_: str, one: Alert) -> None:
    if one.status == "firing":
        batch.count(id_, one)
    else:
        batch.change(id_, one, "resolved", By("prometheus", "test"), Context("key:prometheus"))


def test_a_sender_that_was_overtaken_between_reading_and_writing_is_taken_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(rows, "STRANGERS", 2**31)  # whatever was sent before, it is read
    told = send(alert()).outcomes
    rows.forget([told[0].alert])
    read, overtaken = rows.existing, list[bool]()

    def overtaking(ids: Any, *, hold: bool) -> Any:
        found = read(ids, hold=hold)
        if not overtaken:
            overtaken.append(True)
            elsewhere(alert(status="resolved"))
        return found

    monkeypatch.setattr(rows, "existing", overtaking)
    assert outcomes(send(alert(severity="critical"))) == ["fired"]
    assert [event.body["change"] for event in events()] == ["fired", "resolved", "fired"]


def test_a_repeat_of_an_alert_that_is_remembered_reads_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    send(alert(), alert("disk8"))
    monkeypatch.setattr(rows, "existing", lambda *_, **__: pytest.fail("it was read"))
    for _ in range(2):
        assert outcomes(send(alert(), alert("disk8"))) == ["repeated", "repeated"]
    assert (row().repeats, row("disk8").repeats) == (2, 2)


@pytest.mark.parametrize(
    ("before", "meanwhile", "now", "outcome"),
    [
        (["firing"], ["resolved"], "firing", "fired"),
        (["firing"], ["acknowledged"], "firing", "repeated"),
        (["firing"], ["resolved"], "resolved", "repeated"),
        (["firing", "resolved"], ["firing"], "resolved", "resolved"),
        (
            ["firing", "resolved"],
            ["firing"],
            "acknowledged",
            "acknowledged",
        ),  # of what rests it would be ignored
    ],
)
def test_what_another_process_changed_is_read_again(
    before: list[str], meanwhile: list[str], now: str, outcome: str
) -> None:
    for status in before:
        send(alert(status=status))
    for status in meanwhile:
        elsewhere(alert(status=status))
    assert outcomes(send(alert(status=now))) == [outcome]
    assert row().status == read_stream(f"alert/{row().id}")[-1].body["status"]


def test_where_all_were_new_the_next_is_taken_for_new_unread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "STRANGERS", 3)
    rows.met(0, others=True)
    for number in range(3):
        assert outcomes(send(alert(str(number)))) == ["fired"]
    with monkeypatch.context() as patched:
        patched.setattr(rows, "existing", lambda *_, **__: pytest.fail("it was read"))
        assert outcomes(send(alert("3"))) == ["fired"]
    assert row("3").status == "firing"


@pytest.mark.parametrize(
    ("before", "now", "outcome"),
    [
        ("firing", "firing", "repeated"),
        ("firing", "resolved", "resolved"),
        ("resolved", "resolved", "repeated"),
        ("resolved", "acknowledged", "ignored"),
        ("firing", "acknowledged", "acknowledged"),
    ],
)
def test_what_is_taken_for_new_and_is_not_is_read_after_all(
    monkeypatch: pytest.MonkeyPatch, before: str, now: str, outcome: str
) -> None:
    elsewhere(alert())
    if before == "resolved":
        elsewhere(alert(status="resolved"))
    monkeypatch.setattr(rows, "STRANGERS", 1)
    assert outcomes(send(alert("unheard of"))) == ["fired"]
    assert rows.all_new()
    assert outcomes(send(alert(status=now), alert("new too"))) == [outcome, "fired"]
    assert not rows.all_new()
    assert len([event for event in events() if event.body["key"] == "new too"]) == 1


def test_what_is_remembered_is_what_would_be_read() -> None:
    sent = alert(starts_at=NOON, component="disk/d7", expires_at=NOON + timedelta(days=900))
    for one in (sent, alert(status="resolved"), alert(), alert(severity="critical")):
        (told,) = send(one).outcomes
        assert rows.recalled([told.alert]) == rows.existing([told.alert], hold=False)


def test_no_more_alerts_are_remembered_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rows, "MOST", 3)
    told = [send(alert(str(n))).outcomes[0].alert for n in range(10)]
    assert 1 <= len(rows.recalled(told)) <= 3


def elsewhere(*alerts: Alert) -> None:
    """As by another process: what this one remembers stays as it is."""
    with ThreadPoolExecutor(1) as other:
        other.submit(_store, alerts).result()


def _store(alerts: tuple[Alert, ...]) -> None:
    try:
        store._store([prepare(Delivery("prometheus", "test", "", b""), Parsed(alerts))])
    finally:
        connections.close_all()
