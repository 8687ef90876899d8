"""Timers of escalations in the database: what is due is done once, in the transaction that decides it."""

from __future__ import annotations

import threading
from datetime import timedelta
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection, connections, transaction
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from deploy.observability.metrics import from_database
from incidents import commands
from incidents.domain.incident.escalation import as_json, escalation_from
from incidents.escalation import sweep as sweeping
from incidents.escalation.models import EscalationPolicy, EscalationRow
from incidents.escalation.queries import Directory, overdue
from incidents.escalation.sweep import sweep
from incidents.incident.models import IncidentRow
from incidents.incident.rebuild import rebuild_incidents
from incidents.notifications.models import ContactMethod, Notification
from incidents.oncall.models import OnCallSchedule, Override
from incidents.teams.models import Team
from ingest.db.database import Backoff
from ingest.log.append import append
from ingest.log.types import Context, Head, NewEvent
from tests.integration.incidents.escalation.cases import (
    ALICE,
    Clock,
    calls,
    member,
    people,
    policy,
    stands,
    ticket,
    told,
)

pytestmark = pytest.mark.usefixtures("log_database")


@pytest.fixture(autouse=True)
def as_a_new_process(log_database: str) -> None:  # noqa: ARG001
    sweeping._passed_over = Backoff("escalation", sweeping.PAUSE)
    sweeping._audited.clear()


def test_a_ticket_has_its_timer_in_the_transaction_that_opens_it() -> None:
    with transaction.atomic():
        ticket()
        assert EscalationRow.objects.exclude(due_at=None).count() == 1
        transaction.set_rollback(True)
    assert EscalationRow.objects.count() == 0


def test_the_people_of_the_team_are_called_in_turn_and_the_calls_are_kept() -> None:
    people("alice", "bob")
    policy()
    id_ = ticket()
    clock = Clock(id_)
    assert [clock.later(), calls(id_)] == [1, ["alice"]]
    assert [clock.later(300), calls(id_)] == [1, ["alice", "bob"]]


def test_a_schedule_whose_time_zone_is_no_more_keeps_nobody_else_from_being_called() -> None:
    people("alice")
    OnCallSchedule.objects.create(slug="rota", name="Rota", time_zone="Mars/Base", layers=[])
    policy(steps=[{"after": 0, "actions": [{"schedule": "rota"}, {"person": "alice"}]}])
    id_ = ticket()
    Clock(id_).later()
    assert calls(id_) == ["alice"]
    assert any("schedule rota" in text and "cannot be read" in text for text in told(id_))


def test_a_call_says_why_and_is_urgent_for_what_is_severe() -> None:
    people("alice")
    policy()
    for severity in ("critical", "warning"):
        Clock(ticket(severity=severity)).later()
    urgent, other = Notification.objects.order_by("-urgent")
    assert (urgent.urgent, other.urgent, urgent.why) == (True, False, "opened (step 1 of 2)")


def test_a_sweep_at_the_same_moment_does_nothing_twice() -> None:
    people("alice")
    policy()
    id_ = ticket()
    now = Clock(id_).now
    assert [sweep(now), sweep(now), len(calls(id_))] == [1, 0, 1]


def test_sweeps_of_several_processes_call_everybody_once() -> None:
    people("alice")
    policy()
    ids = [ticket() for _ in range(12)]
    now = timezone.now()
    done: list[int] = []

    def run() -> None:
        try:
            done.append(sum(iter(lambda: sweep(now), 0)))
        finally:
            connections.close_all()

    sweepers = [threading.Thread(target=run) for _ in range(3)]
    for one in sweepers:
        one.start()
    for one in sweepers:
        one.join()
    assert [calls(id_) for id_ in ids] == [["alice"]] * 12
    assert sum(done) == 12


def test_a_ticket_that_somebody_holds_is_passed_over_and_called_for_afterwards() -> None:
    people("alice")
    policy()
    id_ = ticket()
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        with transaction.atomic():
            IncidentRow.objects.select_for_update().get(pk=id_)
            held.set()
            release.wait(20)
        connection.close()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait(20)
    during = sweep(timezone.now())
    release.set()
    holder.join()
    assert (during, sweep(timezone.now())) == (0, 1)


def test_one_ticket_that_cannot_go_on_keeps_no_other_from_being_called() -> None:
    people("alice")
    policy()
    broken, sound = ticket("tor/t1"), ticket()
    EscalationRow.objects.filter(incident__pk=broken).update(state={})
    now = timezone.now()
    with pytest.raises(KeyError):
        sweep(now)
    assert (sweep(now), calls(broken), calls(sound)) == (0, [], ["alice"])


def test_the_one_of_many_that_cannot_go_on_is_found_and_the_others_are_called_in_the_same_sweep() -> None:
    people("alice")
    policy()
    ids = [ticket() for _ in range(9)]
    EscalationRow.objects.filter(incident__pk=ids[4]).update(state={})
    with pytest.raises(KeyError):
        sweep(timezone.now())
    assert [calls(id_) for id_ in ids] == [*[["alice"]] * 4, [], *[["alice"]] * 4]


def test_a_ticket_that_can_be_given_no_timer_keeps_nobody_else_from_being_called() -> None:
    people("alice")
    policy()
    whole, broken = ticket(), IncidentRow.objects.get(pk=ticket())
    broken.delete()
    broken.pk = uuid4()
    broken.save(force_insert=True)
    opened = NewEvent("incident.commented", {"text": "where am I?"}, timezone.now())
    append(f"incident/{broken.pk}", [opened], Head.NEW, Context("system:test"))
    EscalationRow.objects.filter(incident__pk=whole).delete()
    with pytest.raises(ValueError, match="first event"):
        sweep(timezone.now())
    assert (calls(whole), sweep(timezone.now())) == (["alice"], 0)


def test_many_tickets_go_on_with_as_few_statements_as_a_few() -> None:
    people("alice")
    policy()
    taken = []
    for many in (2, 30):
        ids = [ticket() for _ in range(many)]
        sweeping._audited[:] = [timezone.now()]  # it looks for incidents without a timer once in a while
        with CaptureQueriesContext(connection) as asked:
            sweep(timezone.now())
        assert [calls(id_) for id_ in ids] == [["alice"]] * many
        # The log wakes its readers once in a while, however many wrote to it.
        taken.append(sum(not one["sql"].startswith("NOTIFY") for one in asked.captured_queries))
    assert taken[1] <= taken[0]


def test_what_tickets_do_together_rebuilds_the_same() -> None:
    people("alice")
    policy(
        steps=[
            {"actions": [{"person": "alice"}, {"severity": "critical"}, {"bridge": "https://call/{number}"}]}
        ]
    )
    ids = [ticket(severity=severity) for severity in ("warning", "critical", "error")]
    sweep(timezone.now())
    assert [told(id_)[-1] for id_ in ids] == ["Dossier linked Join the call"] * 3
    assert rebuild_incidents(ids) == []


def test_a_policy_that_cannot_be_read_is_the_recorded_reason_why_nobody_is_called() -> None:
    policy(steps=[{"actions": "nonsense"}])
    id_ = ticket()
    Clock(id_).later()
    assert told(id_)[-1].startswith("no one is paged: the policy Storage cannot be read: steps[0].actions")


def test_nobody_is_called_where_there_is_no_policy_and_the_ticket_says_so() -> None:
    id_ = ticket()
    Clock(id_).later()
    assert told(id_)[-1] == "no one is paged: Storage has no escalation policy"


def test_a_rotation_calls_who_is_on_call_at_that_moment() -> None:
    people("alice", "bob")
    layer = {
        "name": "weekly",
        "people": ["alice"],
        "start": "2026-01-05T09:00",
        "turn": "1w",
    }
    rota = OnCallSchedule.objects.create(
        slug="primary", name="Primary", team=Team.objects.get(slug="storage"), time_zone="UTC", layers=[layer]
    )
    policy(
        steps=[{"actions": [{"schedule": "primary"}]}, {"after": 300, "actions": [{"schedule": "primary"}]}]
    )
    id_ = ticket()
    clock = Clock(id_)
    clock.later()
    start = clock.now + timedelta(seconds=60)
    Override.objects.create(
        schedule=rota,
        person=User.objects.get(username="bob"),
        starts_at=start,
        ends_at=start + timedelta(hours=1),
        made_at=start,
    )
    clock.later(300)
    assert calls(id_) == ["alice", "bob"]


def test_a_team_is_called_without_those_who_only_look_and_those_who_left() -> None:
    people("alice", "bob", "charlie")
    for name, role in (("alice", "responder"), ("bob", "manager"), ("charlie", "viewer")):
        member(name, "storage", role)
    User.objects.filter(username="bob").update(is_active=False)
    policy(steps=[{"actions": [{"team": "storage"}]}])
    id_ = ticket()
    Clock(id_).later()
    assert calls(id_) == ["alice"]


def test_a_shared_channel_is_told() -> None:
    ContactMethod.objects.create(name="storage-chat", kind="webhook", address="https://chat.example/hook")
    policy(steps=[{"actions": [{"channel": "storage-chat"}]}])
    id_ = ticket()
    Clock(id_).later()
    one = Notification.objects.get(incident=id_)
    assert (one.person, one.kind, one.address_ref) == (None, "webhook", "storage-chat")


@pytest.mark.parametrize(
    ("action", "why"),
    [
        ({"person": "charlie"}, "no active account with this name"),
        ({"schedule": "gone"}, "no such schedule"),
        ({"team": "gone"}, "no member can be notified"),
        ({"channel": "gone"}, "no such channel"),
        ({"owner": True}, "no owner"),
    ],
)
def test_who_could_not_be_reached_is_told_with_the_reason(action: dict[str, object], why: str) -> None:
    people("alice")
    policy(steps=[{"actions": [action]}, {"after": 3600, "actions": [{"person": "alice"}]}])
    id_ = ticket()
    Clock(id_).later()
    assert f"{why} (step 1 of 2, round 1 of 2)" in told(id_)[-2]
    assert calls(id_) == ["alice"]


def test_a_route_that_names_a_policy_goes_before_the_team_s_until_the_ticket_is_handed_over() -> None:
    people("alice", "bob")
    policy()
    named = EscalationPolicy.objects.create(
        slug="gold", name="Gold", steps=[{"actions": [{"person": "bob"}]}]
    )
    directory = Directory(timezone.now())
    id_ = ticket()
    state = commands.acknowledge(id_, ALICE).incident
    escalation = stands(id_)
    routed = escalation_from({**as_json(escalation), "routed_policy": "gold"})
    assert directory.policy(state.team, routed) == named.policy
    moved = commands.hand_over(id_, "network", "theirs", ALICE).incident
    assert directory.policy(moved.team, routed) == "Network has no escalation policy"


def test_what_is_rebuilt_is_what_was_there() -> None:
    people("alice", "bob")
    policy(acknowledgement_timeout=60)
    id_ = ticket()
    clock = Clock(id_)
    clock.later(300)
    commands.acknowledge(id_, ALICE)
    clock.now = timezone.now()
    clock.later(61)
    commands.comment(id_, "no idea", ALICE)
    before = EscalationRow.objects.filter(incident__pk=id_).values().get()
    assert rebuild_incidents([id_]) == []
    assert EscalationRow.objects.filter(incident__pk=id_).values().get() == before


def test_a_ticket_that_is_older_than_escalations_gets_its_timer_from_the_sweep() -> None:
    people("alice")
    policy()
    id_ = ticket()
    EscalationRow.objects.all().delete()
    assert (sweep(timezone.now()), sweep(timezone.now())) == (2, 0)
    assert calls(id_) == ["alice"]


def test_a_command_on_a_ticket_that_is_older_than_escalations_makes_its_row() -> None:
    id_ = ticket()
    EscalationRow.objects.all().delete()
    commands.acknowledge(id_, ALICE)
    assert stands(id_).phase == "acknowledged"


def test_timers_that_nobody_sees_to_are_counted_for_those_who_watch_dossier() -> None:
    id_ = ticket()
    due = stands(id_).due_at or timezone.now()
    assert overdue(due) == (0, 0.0)
    assert overdue(due + timedelta(seconds=90)) == (1, 90.0)
    Clock(id_).later()
    assert overdue(due + timedelta(seconds=90)) == (0, 0.0)


def test_the_metrics_say_how_late_escalations_are() -> None:
    ticket()
    told = {metric.name: metric.samples[0].value for metric in from_database() if metric.samples}
    assert told["dossier_escalations_late"] == 0
    assert 0 < told["dossier_escalation_overdue_seconds"] < 60


def test_a_shared_mailbox_is_told() -> None:
    ContactMethod.objects.create(name="storage-list", kind="email", address="storage@example.com")
    policy(steps=[{"actions": [{"channel": "storage-list"}]}])
    id_ = ticket()
    Clock(id_).later()
    one = Notification.objects.get(incident=id_)
    assert (one.person, one.kind, one.address_ref) == (None, "email", "storage-list")


def test_who_waits_for_a_policy_is_called_for_once_the_team_has_one() -> None:
    people("alice", "bob")
    id_ = ticket()
    clock = Clock(id_)
    clock.later()
    policy()
    clock.later(61)
    assert calls(id_) == ["alice"]
