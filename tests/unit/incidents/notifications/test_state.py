"""States of a message: it goes, waits, stops or is given up."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from incidents.domain.incident import commands as c
from incidents.domain.notifications import delivery as d
from incidents.domain.notifications.delivery import Method, Person, QuietHours, Reply, Rule, quiet_from, steps
from tests.unit.incidents.incident.cases import NOON, after, opened

PHONE = Method("phone", "apprise", most=2, span=timedelta(minutes=15))
MAIL = Method("mail", "email")
ALICE = Person("alice", (PHONE, MAIL))
NIGHT = QuietHours("UTC", NOON.time().replace(hour=11), NOON.time().replace(hour=13))
OPEN = d.NotifiedIncident("open", "error", "storage", NOON - timedelta(hours=1))
DUE = d.Due(PHONE, NOON, NOON, urgent=False, first=True)
BUSY = d.Line((NOON - timedelta(minutes=10), NOON - timedelta(minutes=5)), NOON - timedelta(minutes=5))
REPLIES = st.sampled_from([Reply("taken"), Reply("passing", "busy"), Reply("refused", "no such number")])


def judged(
    due: d.Due = DUE,
    ticket: d.NotifiedIncident = OPEN,
    person: Person | None = ALICE,
    line: d.Line | None = None,
) -> d.Send | d.Stop | d.Wait:
    return d.judge(due, ticket, person, line or d.Line(), NOON)


def test_a_ticket_that_waits_for_somebody_is_told() -> None:
    assert judged() == d.Send()


@pytest.mark.parametrize(
    ("command", "why"),
    [
        (c.Acknowledge(), "acknowledged by alice"),
        (c.Resolve("none"), "resolved by alice"),
        (c.Snooze(), "snoozed by alice"),
        (c.HandOver("network", "theirs"), "handed over to network"),
    ],
)
def test_whatever_answers_a_ticket_stops_its_messages(command: c.Command, why: str) -> None:
    ticket = d.notified(after(command, state=after(opened()), now=NOON))
    assert judged(replace(DUE, made_at=NOON - timedelta(minutes=1)), ticket) == d.Stop(why)


def test_an_acknowledgement_stops_messages_whichever_of_two_clocks_is_ahead() -> None:
    ticket = replace(OPEN, state="acknowledged", acknowledged_by="bob")
    assert judged(replace(DUE, made_at=NOON + timedelta(seconds=5)), ticket) == d.Stop("acknowledged by bob")


def test_a_hand_over_that_is_taken_back_stops_messages_to_those_whom_it_called() -> None:
    assert judged(replace(DUE, team=OPEN.team)) == d.Send()
    assert judged(replace(DUE, team="elsewhere")) == d.Stop(f"back with {OPEN.team}")


def test_a_throttle_never_holds_the_first_page_of_a_ticket() -> None:
    assert judged(line=BUSY) == d.Send()


def test_a_throttle_holds_what_was_told_before_and_says_until_when() -> None:
    held = judged(replace(DUE, first=False), line=BUSY)
    assert held == d.Wait(NOON + timedelta(minutes=5), "2 messages in 15 min; next at 2026-11-21T12:05:00Z")


def test_a_throttle_holds_nothing_longer_than_one_span() -> None:
    assert judged(replace(DUE, first=False, at=NOON - PHONE.span), line=BUSY) == d.Send()


def test_quiet_hours_hold_what_is_not_urgent_until_they_end() -> None:
    assert judged(person=replace(ALICE, quiet=NIGHT)) == d.Wait(
        NOON + timedelta(hours=1), "quiet hours until 13:00 (UTC)"
    )


@pytest.mark.parametrize(
    ("due", "ticket"), [(replace(DUE, urgent=True), OPEN), (DUE, replace(OPEN, severity="critical"))]
)
def test_what_is_urgent_or_critical_breaks_through_quiet_hours(
    due: d.Due, ticket: d.NotifiedIncident
) -> None:
    assert judged(due, ticket, replace(ALICE, quiet=NIGHT)) == d.Send()


def test_what_follows_a_message_within_seconds_waits_for_others() -> None:
    held = judged(line=d.Line((), NOON - timedelta(seconds=5)))
    assert isinstance(held, d.Wait)
    assert (held.until, held.bundling) == (NOON + timedelta(seconds=10), True)


def test_a_message_of_a_process_whose_clock_is_a_little_ahead_holds_the_next_one() -> None:
    held = judged(line=d.Line((), NOON + timedelta(seconds=1)))
    assert isinstance(held, d.Wait)
    assert held.until == NOON + timedelta(seconds=16)


def test_a_message_of_a_clock_that_was_set_back_since_holds_nothing() -> None:
    assert judged(line=d.Line((), NOON + timedelta(days=3))) == d.Send()


def test_what_was_let_through_once_is_tried_again_whatever_the_throttle_says() -> None:
    assert judged(replace(DUE, first=False, attempts=1), line=BUSY) == d.Send()


def test_an_answer_for_good_ends_it_at_the_first_attempt() -> None:
    assert d.after(Reply("refused", "no such number"), 1, NOON, 0.5) == d.GiveUp("no such number")


def test_a_passing_fault_is_tried_again_with_growing_pauses() -> None:
    pauses = [d.after(Reply("passing"), attempt, NOON, 0.5) for attempt in range(1, 5)]
    assert [p.at - NOON for p in pauses if isinstance(p, d.Retry)] == [
        timedelta(seconds=s) for s in (5, 15, 30, 60)
    ]


def test_jitter_moves_an_attempt_by_a_quarter_at_most() -> None:
    early, late = (d.after(Reply("passing"), 4, NOON, jitter) for jitter in (0.0, 1.0))
    assert (early, late) == (
        d.Retry(NOON + timedelta(seconds=45), ""),
        d.Retry(NOON + timedelta(seconds=75), ""),
    )


def test_a_receiver_that_says_when_is_not_asked_before() -> None:
    reply = Reply("passing", retry_after=timedelta(minutes=3))
    assert d.after(reply, 1, NOON, 0.5) == d.Retry(NOON + timedelta(minutes=3), "")


def test_passing_faults_do_not_last_for_ever() -> None:
    assert isinstance(d.after(Reply("passing", "busy"), d.MOST_ATTEMPTS, NOON, 0.5), d.GiveUp)


def test_three_failures_bring_the_next_method_forward() -> None:
    waiting = d.Tried("mail", "waiting")
    assert not d.is_stuck([d.Tried("phone", "waiting", 2), waiting])
    assert d.is_stuck([d.Tried("phone", "waiting", 3), waiting])


def test_what_was_sent_by_one_method_brings_nothing_forward() -> None:
    assert not d.is_stuck([d.Tried("phone", "given_up", 1), d.Tried("mail", "sent", 1)])


class Call:
    """A call as delivery carries it out, with the answers that receivers give and the moment of an acknowledgement."""

    def __init__(
        self, person: Person, replies: list[Reply], answered_after: int | None, urgent: bool
    ) -> None:
        self.person, self.replies, self.urgent = person, replies, urgent
        self.answered_at = None if answered_after is None else NOON + timedelta(seconds=answered_after)
        plan = steps(person, "error", urgent, NOON)
        self.next = {place: step.at for place, step in enumerate(plan)}
        self.plan = [step.method for step in plan]
        self.at = dict(self.next)
        self.tried = [d.Tried(method.name, "waiting") for method in self.plan]
        self.sent: list[tuple[str, object]] = []
        self.reasons: list[str] = []

    def ticket(self, now: object) -> d.NotifiedIncident:
        over = self.answered_at is not None and now >= self.answered_at  # type: ignore[operator]
        return OPEN if not over else replace(OPEN, state="resolved", resolved_by="bob")

    def carry_out(self) -> None:
        for _ in range(2_000):
            waiting = [place for place, one in enumerate(self.tried) if one.state == "waiting"]
            if not waiting:
                return
            place = min(waiting, key=lambda place: self.next[place])
            self.step(place)
        raise AssertionError(f"never ends: {self.tried}")

    def step(self, place: int) -> None:
        now, method, one = self.next[place], self.plan[place], self.tried[place]
        made = [at for _, at in self.sent]
        due = d.Due(method, self.at[place], NOON, self.urgent, not self.sent, one.attempts)
        line = d.Line(tuple(at for name, at in self.sent if name == method.name), made[-1] if made else None)  # type: ignore[arg-type, misc]
        match d.judge(due, self.ticket(now), self.person, line, now):
            case d.Stop(why):
                self.end(place, "stopped", why)
            case d.Wait(until, why):
                assert until > now, why
                assert why
                self.next[place] = until
            case d.Send():
                self.send(place)

    def send(self, place: int) -> None:
        now, one = self.next[place], self.tried[place]
        reply = self.replies.pop() if self.replies else Reply("passing", "busy")
        self.tried[place] = one = replace(one, attempts=one.attempts + 1)
        match d.after(reply, one.attempts, now, 0.5):
            case d.Done():
                self.sent.append((one.name, now))
                self.end(place, "sent", "")
            case d.Retry(at, _):
                assert at > now
                self.next[place] = at
            case d.GiveUp(why):
                self.end(place, "given_up", why)

    def end(self, place: int, standing: d.DeliveryState, why: str) -> None:
        self.tried[place] = replace(self.tried[place], state=standing)
        self.reasons.append(why)


PEOPLE = st.builds(
    Person,
    st.just("alice"),
    st.just((PHONE, MAIL)),
    st.lists(
        st.builds(Rule, st.sampled_from(["phone", "mail"]), st.timedeltas(timedelta(0), timedelta(hours=24))),
        max_size=5,
    ).map(tuple),
    st.none() | st.just(NIGHT),
)
CALLS = st.builds(
    Call, PEOPLE, st.lists(REPLIES, max_size=40), st.none() | st.integers(1, 90_000), st.booleans()
)


@given(CALLS)
def test_every_call_ends_as_sent_stopped_or_given_up(call: Call) -> None:
    call.carry_out()
    assert d.outcome(call.tried) in ("sent", "stopped", "given_up")


@given(CALLS)
def test_nothing_is_sent_once_the_ticket_is_answered(call: Call) -> None:
    call.carry_out()
    assert all(call.answered_at is None or at < call.answered_at for _, at in call.sent)  # type: ignore[operator]


@given(CALLS)
def test_what_was_not_sent_says_why(call: Call) -> None:
    call.carry_out()
    assert call.sent or all(call.reasons)


@given(st.lists(st.integers(1, 3_600), max_size=30), st.booleans())
def test_no_history_of_messages_throttles_a_first_page(ago: list[int], urgent: bool) -> None:
    times = tuple(sorted(NOON - timedelta(seconds=seconds + 60) for seconds in ago))
    line = d.Line(times, times[-1] if times else None)
    assert judged(replace(DUE, urgent=urgent), line=line) == d.Send()


def test_quiet_hours_that_are_written_are_read() -> None:
    assert quiet_from({"zone": "UTC", "start": "11:00", "end": "13:00"}) == NIGHT
