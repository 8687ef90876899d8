"""A world in which anything happens to incidents, in any order: people, alerts, sweeps, deliveries and crashes.

A step is (what, which); time goes on only when a step says so. `settle` lets time pass until nothing is due any more;
`check` then says what must hold whatever happened.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

from django.contrib.auth.models import User
from django.db import transaction

from incidents import commands, queries
from incidents.alerts import resolve as pending_resolutions
from incidents.commands import CommandRefusedError, InvalidValueError
from incidents.domain.incident import commands as c
from incidents.domain.incident.evolve import fold
from incidents.escalation import sweep as sweeping
from incidents.escalation.commands import escalate
from incidents.escalation.models import EscalationPolicy, EscalationRow
from incidents.escalation.sweep import sweep
from incidents.follower import follower
from incidents.incident.models import IncidentRow, MemberAlert, TimelineEntry
from incidents.incident.projection import state_of
from incidents.incident.rebuild import checksums, rebuild_incidents
from incidents.incident.repository import record
from incidents.notifications.channels.send import send as send_message
from incidents.notifications.dispatcher import deliver_due
from incidents.notifications.models import ContactMethod, Notification, NotificationDelivery, Preferences
from incidents.notifications.queue import claim, plan_new
from incidents.teams.models import Team
from incidents.timers import OF_INCIDENTS
from ingest.commands import Backoff
from ingest.queries import Context, Event, open_alerts, read_stream
from tests.following import follow_to_the_end
from tests.integration.incidents.alerts.test_correlate import alert, send
from tests.integration.incidents.escalation.cases import ALICE, member, policy, ticket
from tests.integration.incidents.notifications.cases import HookSink

NAMES = ("alice", "bob", "charlie")
TEAMS = ("storage", "network", "compute")
"""The last has no policy."""
COMMANDS: tuple[c.Command, ...] = (
    c.Acknowledge(),
    c.Unacknowledge(),
    c.Assign("bob"),
    c.HandOver("network", "theirs"),
    c.HandOver("compute", "theirs"),
    c.Accept(),
    c.Bounce("not ours"),
    c.Undo(),
    c.Snooze(None),
    c.Comment("looking"),
    c.SetSeverity("critical"),
    c.SetSeverity("info"),
    c.Resolve("none"),
    c.Resolve("switch/x"),
)
LONGEST = 40
"""Rounds until nothing is due: three policies of two rounds each, and what is acknowledged and forgotten."""
_tags = count()


class CrashError(Exception):
    """Ends a transaction as a process that is killed does."""


def people_and_policies(url: str) -> None:
    """Alice and Bob can be reached; Charlie cannot, and the incident has to say so."""
    for name in NAMES:
        user = User.objects.create(username=name)
        Preferences.objects.create(user=user, bundle_seconds=0)
        if name != "charlie":
            ContactMethod.objects.create(user=user, name="hook", kind="webhook", address=url)
    steps = [
        {"after": 0, "actions": [{"person": "alice"}]},
        {"after": 300, "actions": [{"person": "charlie"}, {"severity": "critical"}]},
        {"after": 300, "actions": [{"team": "storage"}, {"channel": "nowhere"}]},
    ]
    policy(steps=steps, restart_when_worse=True)
    policy("network", "network", steps=[{"after": 60, "actions": [{"person": "bob"}, {"owner": True}]}])
    for name in NAMES:
        member(name, "storage")


@dataclass
class World:
    sink: HookSink
    now: datetime = field(default_factory=lambda: datetime.now(UTC))
    ids: list[str] = field(default_factory=list)
    tag: str = field(default_factory=lambda: f"h{next(_tags)}")

    def __post_init__(self) -> None:
        User.objects.update(is_active=True)
        sweeping._passed_over = Backoff("escalation", sweeping.PAUSE)
        self.ids = [ticket(), ticket("switch/x", severity="info")]

    def do(self, what: str, which: int) -> None:
        getattr(self, what)(which)

    def crash(self, what: str, which: int) -> None:
        """The step is killed before it commits."""
        with suppress(CrashError), transaction.atomic():
            self.do(what, which)
            raise CrashError

    # What may happen
    # ------------------------------------------------------------------------------------------------------
    def command(self, which: int) -> None:
        one = COMMANDS[which % len(COMMANDS)]
        id_ = self.ids[which % len(self.ids)]
        with suppress(CommandRefusedError, InvalidValueError), transaction.atomic():
            record(id_, one, ALICE if which % 3 else Context("system:incidents"), self.now)

    def merge(self, which: int) -> None:
        source, into = self.ids[which % len(self.ids)], self.ids[(which + 1) % len(self.ids)]
        with suppress(CommandRefusedError, InvalidValueError):
            commands.merge(source, into, "", ALICE)

    def split(self, which: int) -> None:
        with suppress(CommandRefusedError, InvalidValueError):
            commands.split(self.ids[which % len(self.ids)], "", ALICE)

    def reopen(self, which: int) -> None:
        with suppress(CommandRefusedError, InvalidValueError):
            commands.reopen(self.ids[which % len(self.ids)], "", ALICE)

    def escalate(self, which: int) -> None:
        with suppress(CommandRefusedError, InvalidValueError):
            escalate(self.ids[which % len(self.ids)], "now", ALICE)

    def fires(self, which: int) -> None:
        self._alert(which, "firing")

    def rests(self, which: int) -> None:
        self._alert(which, "resolved")

    def _alert(self, which: int, status: str) -> None:
        key = f"{self.tag}{which % 3}"
        one = alert(key, status, group=f"{self.tag}{which % 2}")
        send(one, one)  # delivered twice
        for row in IncidentRow.objects.filter(members__alert__isnull=False, number__gt=self._first()):
            if str(row.pk) not in self.ids:
                self.ids.append(str(row.pk))

    def _first(self) -> int:
        return IncidentRow.objects.get(pk=self.ids[0]).number

    def time(self, which: int) -> None:
        self.now += timedelta(seconds=(0, 61, 301, 1801, 86_400)[which % 5])

    def back(self, which: int) -> None:
        """The clock is set back."""
        self.now -= timedelta(seconds=(5, 61, 3601, 90_000)[which % 4])

    def sweep(self, which: int) -> None:
        for _ in range(1 + which % 2):
            sweep(self.now)

    def settling(self, _: int) -> None:
        """Some of the alerts of an incident that was resolved."""
        pending_resolutions.sweep(self.now)

    def wake(self, _: int) -> None:
        OF_INCIDENTS["due snoozes"](self.now)

    def deliver(self, _: int) -> None:
        deliver_due(self.now)

    def deliver_and_die(self, which: int) -> None:
        """Claimed, perhaps sent, and never recorded."""
        plan_new(self.now)
        for outgoing in claim(self.now, (), lambda _: 4):
            if which % 2:
                send_message(outgoing)

    def leaves(self, which: int) -> None:
        User.objects.filter(username=NAMES[which % 3]).update(is_active=bool(which % 2))

    def unreadable(self, which: int) -> None:
        """Somebody writes a policy into the table that cannot be."""
        wrong: Any = [{"actions": "nonsense"}]
        if which % 2:
            EscalationPolicy.objects.filter(slug="network").update(steps=wrong)
        else:
            right = [{"after": 60, "actions": [{"person": "bob"}]}]
            EscalationPolicy.objects.filter(slug="network").update(steps=right)

    # What must hold
    # ------------------------------------------------------------------------------------------------------
    def settle(self) -> None:
        for _ in range(LONGEST):
            did = sum(iter(lambda: sweep(self.now), 0)) + deliver_due(self.now)
            did += sum(iter(lambda: pending_resolutions.sweep(self.now), 0))
            timers = EscalationRow.objects.exclude(due_at=None).order_by("due_at")
            if not did and not timers and not NotificationDelivery.objects.filter(state="waiting").exists():
                return
            later = [row.due_at for row in timers[:1] if row.due_at is not None]
            later += (
                NotificationDelivery.objects.filter(state="waiting")
                .order_by("next_at")
                .values_list("next_at", flat=True)[:1]
            )
            self.now = max([self.now + timedelta(hours=1), *later])
        sendings = NotificationDelivery.objects.filter(state="waiting").values()
        raise AssertionError(
            f"due for ever at {self.now}: {timers.values()[:3]} {sendings[:3]}, {did} went on"
        )

    def check(self) -> None:
        for id_ in self.ids:
            row, events = IncidentRow.objects.get(pk=id_), read_stream(f"incident/{id_}")
            assert state_of(row) == fold(events)
            self._belongs_to_a_team(row)
            self._waits_with_a_reason(row, events)
            self._everybody_who_was_called_was_told_or_the_ticket_says_why(id_, events)
        assert rebuild_incidents(self.ids) == []
        self._what_was_lost_is_built_again_byte_for_byte()
        self._what_fires_has_one_ticket_and_that_knows_it()
        self._what_was_sent_arrived_under_one_key()

    def _what_was_lost_is_built_again_byte_for_byte(self) -> None:
        before = checksums(self.ids)
        for model in (TimelineEntry, MemberAlert, EscalationRow):
            model._default_manager.filter(incident__pk__in=self.ids).delete()
        assert rebuild_incidents(self.ids) == self.ids
        assert checksums(self.ids) == before

    def _what_fires_has_one_ticket_and_that_knows_it(self) -> None:
        follow_to_the_end(follower())
        for one in (one for one in open_alerts() if one.alert.key.startswith(self.tag)):
            open_ = MemberAlert.objects.filter(alert=one.id, resolved=False).exclude(
                incident__state="resolved"
            )
            assert open_.count() == 1, (one.alert.key, list(open_.values("incident__number")))
        for row in IncidentRow.objects.filter(pk__in=self.ids).exclude(state="resolved"):
            assert row.firing == row.members.filter(resolved=False).count(), f"#{row.number}"

    def _belongs_to_a_team(self, row: IncidentRow) -> None:
        assert Team.objects.filter(slug=row.team).exists(), row.team
        assert row.routing

    def _waits_with_a_reason(self, row: IncidentRow, events: list[Event]) -> None:
        if row.state != "open":
            return
        end = {"exhausted": "incident.escalation_exhausted", "uncalled": "incident.escalation_skipped"}
        phase = row.escalation.phase
        assert phase in end, f"#{row.number} waits and is {phase}"
        assert end[phase] in [event.type for event in events]

    def _everybody_who_was_called_was_told_or_the_ticket_says_why(
        self, id_: str, events: list[Event]
    ) -> None:
        asked: list[str] = []
        for event in (one for one in events if one.type == "incident.escalated"):
            body = event.body
            place = f"escalation:{id_}:{body['run']}:{body['round']}:{body['step']}"
            asked += [f"{place}:person:{one['person']}" for one in body["called"]]
            assert body["called"] or body["channels"] or body["unreachable"] or _does_something(events)
        calls = Notification.objects.filter(incident=id_)
        assert sorted(asked) == sorted(call.key for call in calls)
        told = {event.body["notification"] for event in events if event.type == "incident.notified"}
        assert [(call.key, call.state) for call in calls if call.state != "done"] == []
        assert told == set(asked)

    def _what_was_sent_arrived_under_one_key(self) -> None:
        mine = NotificationDelivery.objects.filter(notification__incident__in=self.ids, state="sent")
        pairs = {
            (str(one.message), str(one.notification.incident)) for one in mine.select_related("notification")
        }
        arrived = {
            (headers["Idempotency-Key"], about["id"])
            for headers, body in self.sink.taken
            for about in body["incidents"]
            if about["id"] in self.ids
        }
        assert arrived >= pairs
        assert len(mine) >= len(arrived - self._given_up())

    def _given_up(self) -> set[tuple[str, str]]:
        """Sent by a process that died, then stopped because somebody had answered."""
        rows = NotificationDelivery.objects.filter(notification__incident__in=self.ids).exclude(state="sent")
        named = rows.exclude(message=None).select_related("notification")
        return {(str(one.message), str(one.notification.incident)) for one in named}


def _does_something(events: list[Event]) -> bool:
    return any(event.type in ("incident.severity_set", "incident.linked") for event in events)


STEPS: tuple[str, ...] = (
    *("command",) * 6,
    *("merge", "split", "escalate", "fires", "rests", "wake", "leaves", "unreadable", "deliver_and_die"),
    *("fires", "settling", "reopen", "back"),
    *("time", "sweep", "deliver") * 3,
)


_SEVERAL_TRANSACTIONS = frozenset({"deliver", "deliver_and_die", "fires", "rests"})
"""Acts whose parts commit one by one: a follower reads only what was committed, a sender only what it claimed."""


def happens(world: World, history: list[tuple[str, int, str]]) -> None:
    """Each step as it is, twice (a duplicate), or killed before it commits and then done again."""
    how: dict[str, Callable[[str, int], None]] = {"once": world.do, "killed": world.crash}
    for what, which, manner in history:
        for one in {"twice": ("once", "once"), "killed": ("killed", "once"), "lost": ("killed",)}.get(
            manner, ("once",)
        ):
            how["once" if what in _SEVERAL_TRANSACTIONS else one](what, which)
    world.settle()
    world.check()
    assert queries.get(world.ids[0]).version == len(read_stream(f"incident/{world.ids[0]}"))
