"""A batch of alerts over many incidents: few statements, and the same outcome as one alert after another."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext

from incidents import commands, queries
from incidents.alerts import correlate
from incidents.domain.incident import commands as c
from incidents.follower import follower
from incidents.incident import rebuild as rebuilding
from incidents.incident.models import IncidentRow, MemberAlert
from incidents.incident.repository import IncidentCommand, IncidentNotFoundError, record_each
from ingest.alerts.deliveries import Delivery
from ingest.alerts.store import receive
from ingest.commands import run_follower_once
from ingest.integrations.normalized import Alert, Parsed
from ingest.queries import Context, read_stream
from tests.following import follow_to_the_end

ALICE = Context("user:alice")
pytestmark = pytest.mark.usefixtures("log_database")


def alert(number: int, rule: int, status: Any = "firing", severity: Any = "warning") -> Alert:
    return Alert(f"k{number}", status, title=f"k{number} is slow", group=f"Rule {rule}", severity=severity)


def store(alerts: Sequence[Alert], integration: str = "prometheus") -> None:
    receive(Parsed(tuple(alerts)), Delivery(integration, "test", "application/json", b"{}"))


def statements(rules: int, integration: str) -> int:
    """Statements of the batch in which two alerts join each of so many open incidents."""
    store([alert(n, n % rules) for n in range(rules)], integration)
    follow_to_the_end(follower())
    store([alert(n, n % rules) for n in range(rules, 3 * rules)], integration)
    with CaptureQueriesContext(connection) as seen:
        follow_to_the_end(follower())
    counts = MemberAlert.objects.filter(incident__dedup_key__startswith=f"alerts:{integration}:")
    assert set(Counter(counts.values_list("incident_id", flat=True)).values()) == {3}
    return len(seen)


def test_alerts_of_many_incidents_need_no_more_statements_than_those_of_few() -> None:
    few, many = statements(4, "few"), statements(60, "many")
    assert many <= few + 10  # a pass of the follower that finds nothing has some


@pytest.mark.parametrize("rules", [1, 30])
def test_a_batch_reads_and_locks_the_incidents_that_it_joins_once(rules: int) -> None:
    store([alert(n, n % rules) for n in range(rules)])
    follow_to_the_end(follower())
    store([alert(n, n % rules) for n in range(rules, 3 * rules)])
    with CaptureQueriesContext(connection) as seen:
        follow_to_the_end(follower())
    assert sum('FROM "incident"' in one["sql"] and "FOR UPDATE" in one["sql"] for one in seen) == 1


def history(seed: int) -> list[list[Alert]]:
    """Bodies in which alerts of nine rules fire, at other severities too, and bodies in which they are over."""
    drawn = random.Random(seed)
    return [
        [
            alert(number, number % 9, status, drawn.choice(["info", "warning", "critical"]))
            for number in drawn.sample(range(40), 25 if status == "firing" else 15)
        ]
        for status in ("firing", "firing", "resolved", "firing", "resolved", "resolved", "firing")
    ]


def outcome(integration: str) -> dict[str, list[tuple[Any, ...]]]:
    """By rule its incidents in the order of their opening: fields, and which members are over."""
    found: dict[str, list[tuple[Any, ...]]] = {}
    rows = IncidentRow.objects.filter(dedup_key__startswith=f"alerts:{integration}:").order_by("number")
    for row in rows:
        members = MemberAlert.objects.filter(incident=row)
        events = read_stream(f"incident/{row.pk}")
        assert [event.version for event in events] == list(range(1, len(events) + 1))
        fields = (row.state, row.severity, row.alerts, row.firing, row.title)
        resting = sorted(members.values_list("resolved", flat=True))
        found.setdefault(row.dedup_key.rpartition(":")[2], []).append((fields, resting))
    return found


@pytest.mark.parametrize("seed", [1, 2])
def test_a_batch_does_what_single_alerts_would_have_done(seed: int) -> None:
    for body in history(seed):
        store(body, "together")
        follow_to_the_end(follower())
    for body in history(seed):
        store(body, "apart")
        while run_follower_once(follower(), limit=1):
            pass
        follow_to_the_end(follower())
    assert outcome("together") == outcome("apart")
    assert max(map(len, outcome("together").values())) > 1
    assert rebuilding.rebuild().differed == ()


def test_alerts_that_get_worse_together_raise_their_incident_once_for_each_severity() -> None:
    store([alert(n, 1, severity="info") for n in range(30)])
    follow_to_the_end(follower())
    store([alert(n, 1, severity="error" if n < 10 else "critical") for n in range(30)])
    with CaptureQueriesContext(connection) as seen:
        follow_to_the_end(follower())
    one = queries.get("1").incident
    assert (one.severity, one.alerts, len(seen) < 90) == ("critical", 30, True)
    raised = [e.body for e in read_stream(f"incident/{one.id}") if e.type == "incident.severity_set"]
    assert [body["severity"] for body in raised] == ["error", "critical"]


def test_the_title_of_a_group_is_from_its_newest_alerts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(correlate, "MOST_READ", 10)
    for first, last in ((0, 12), (12, 25), (25, 60)):
        store([alert(number, 1) for number in range(first, last)])
        follow_to_the_end(follower())
    assert queries.get("1").incident.title == "Rule 1: 50+ alerts"
    store([Alert(f"x{n}", "firing", title="Off", group="Rule 2", component="host/1") for n in range(60)])
    follow_to_the_end(follower())
    store([Alert(f"y{n}", "firing", title="Off", group="Rule 2", component="host/1") for n in range(60)])
    follow_to_the_end(follower())
    assert queries.get("2").incident.title == "Off: 100+ alerts on host/1"


def test_the_events_of_an_incident_are_in_the_order_of_its_commands() -> None:
    store([alert(n, n % 3) for n in range(6)])
    follow_to_the_end(follower())
    first, second, third = (str(row.pk) for row in IncidentRow.objects.order_by("number"))
    given = [(second, "a"), (first, "b"), (second, "c"), (third, "d"), (first, "e"), (second, "f")]
    with transaction.atomic():
        results = record_each([IncidentCommand(id_, c.Comment(text), ALICE) for id_, text in given])
    assert [(one.incident.id, one.events[0].body["text"]) for one in results] == given
    said = {
        id_: [
            event.body["text"]
            for event in read_stream(f"incident/{id_}")
            if event.type == "incident.commented"
        ]
        for id_ in (first, second, third)
    }
    assert said == {first: ["b", "e"], second: ["a", "c", "f"], third: ["d"]}


def test_a_command_on_an_incident_that_is_not_there_records_none() -> None:
    store([alert(1, 1)])
    follow_to_the_end(follower())
    there, missing = queries.get("1").incident.id, "00000000-0000-0000-0000-000000000000"
    pair = [IncidentCommand(id_, c.Comment("looking"), ALICE) for id_ in (there, missing)]
    with pytest.raises(IncidentNotFoundError, match=missing), transaction.atomic():
        record_each(pair)
    assert "incident.commented" not in [event.type for event in read_stream(f"incident/{there}")]


def test_alerts_of_two_rules_whose_incidents_were_merged_join_one() -> None:
    store([alert(n, n) for n in range(3)])
    follow_to_the_end(follower())
    source, target = (IncidentRow.objects.get(dedup_key__endswith=f":Rule {rule}") for rule in (0, 1))
    commands.merge(str(source.pk), str(target.pk), "the same disk", ALICE)
    store([alert(n, n % 3) for n in range(3, 36)])
    follow_to_the_end(follower())
    target.refresh_from_db()
    assert (target.alerts, target.firing) == (24, 24)
    assert target.title == "Rule 1: 20+ alerts"
    assert rebuilding.rebuild().differed == ()


def waits_for_a_lock() -> bool:
    """By `pg_locks`: what a transaction has read once of `pg_stat_activity` stays the same until it ends."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE NOT granted")
        return bool(cursor.fetchone()[0])


def test_an_incident_that_a_person_resolves_while_a_batch_waits_swallows_none_of_it() -> None:
    store([alert(n, n) for n in range(5)])
    follow_to_the_end(follower())
    taken = IncidentRow.objects.get(dedup_key__endswith=":Rule 2")
    store([alert(n, n % 5) for n in range(5, 25)])

    def follow() -> None:
        try:
            follow_to_the_end(follower())
        finally:
            connections.close_all()

    following = threading.Thread(target=follow)
    with transaction.atomic():
        IncidentRow.objects.select_for_update().get(pk=taken.pk)
        following.start()
        deadline = time.monotonic() + 30
        while not waits_for_a_lock():
            assert time.monotonic() < deadline, "the follower does not wait for the incident"
            time.sleep(0.01)
        commands.resolve(str(taken.pk), "none", "replaced the disk", ALICE)
    following.join(60)
    follow_to_the_end(follower())
    taken.refresh_from_db()
    assert (taken.state, taken.alerts) == ("resolved", 1)
    successor = IncidentRow.objects.exclude(state="resolved").get(dedup_key__endswith=":Rule 2")
    assert successor.alerts == 4
    assert MemberAlert.objects.count() == len(set(MemberAlert.objects.values_list("alert", flat=True))) == 25


def test_people_who_write_on_the_incidents_of_a_storm_lose_nothing_and_double_nothing() -> None:
    store([alert(n, n) for n in range(12)])
    follow_to_the_end(follower())
    ids = [str(pk) for pk in IncidentRow.objects.values_list("pk", flat=True)]
    written = Counter[str]()
    stop = threading.Event()

    def write(mine: Sequence[str]) -> None:
        try:
            while not stop.is_set():
                for id_ in mine:
                    commands.comment(id_, "looking", ALICE)
                    written[id_] += 1
        finally:
            connections.close_all()

    writers = [threading.Thread(target=write, args=(ids[half::2],)) for half in range(2)]
    for writer in writers:
        writer.start()
    for part in range(6):
        store([alert(n, n % 12) for n in range(12 + 40 * part, 52 + 40 * part)])
        follow_to_the_end(follower())
    stop.set()
    for writer in writers:
        writer.join(30)
    comments = {
        id_: sum(event.type == "incident.commented" for event in read_stream(f"incident/{id_}"))
        for id_ in ids
    }
    assert comments == {id_: written[id_] for id_ in ids}
    assert sum(IncidentRow.objects.values_list("alerts", flat=True)) == 252
    assert Counter(MemberAlert.objects.values_list("alert", flat=True)).most_common(1)[0][1] == 1
    assert rebuilding.rebuild().differed == ()
