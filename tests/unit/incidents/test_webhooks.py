"""Bodies of webhooks, how they are signed, what answers mean and when an endpoint is given up."""

import hashlib
import hmac
import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from incidents.domain.webhooks import (
    DISABLE_AFTER,
    GIVE_UP,
    LARGEST_BODY,
    LONGEST_PAUSE,
    PATIENCE,
    EventFilter,
    Health,
    after,
    exhausted,
    given_up,
    outcome,
    pause,
    payload,
    retry_after_of,
    sign,
)
from tests.unit.incidents.incident.cases import after as carried_out
from tests.unit.incidents.incident.cases import opened

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
TICKET = carried_out(opened())


def test_a_webhook_without_a_filter_gets_everything() -> None:
    assert EventFilter().lets_through("incident.opened", None, TICKET)


def test_a_webhook_gets_only_the_types_that_it_asks_for() -> None:
    wanted = EventFilter(types=frozenset({"incident.resolved"}))
    assert not wanted.lets_through("incident.opened", None, TICKET)
    assert wanted.lets_through("incident.resolved", TICKET, TICKET)


def test_a_hand_over_is_told_to_the_team_that_had_it_too() -> None:
    wanted = EventFilter(teams=frozenset({"storage"}))
    network = replace(TICKET, team="network")
    assert wanted.lets_through("incident.reassigned", replace(TICKET, team="storage"), network)
    assert not wanted.lets_through("incident.commented", network, network)


def test_what_stops_being_severe_is_told_to_those_who_watch_the_severe() -> None:
    wanted = EventFilter(severities=frozenset({"critical"}))
    critical, info = replace(TICKET, severity="critical"), replace(TICKET, severity="info")
    assert wanted.lets_through("incident.severity_set", critical, info)
    assert not wanted.lets_through("incident.commented", info, info)


def test_the_signature_is_over_the_time_and_the_body() -> None:
    made = hmac.new(b"s3cret", b"1700000000.{}", hashlib.sha256).hexdigest()
    assert sign(["s3cret"], 1_700_000_000, b"{}") == f"t=1700000000,v1={made}"


def test_during_a_rotation_both_secrets_sign() -> None:
    assert sign(["new", "old"], 1, b"{}").count(",v1=") == 2


def test_a_payload_is_the_same_bytes_each_time() -> None:
    def made(ticket: dict[str, int]) -> bytes:
        return payload("a@1", "incident.opened", "user:alice", NOW, "0", ticket, {})

    assert made({"b": 1, "a": 2}) == made({"a": 2, "b": 1})


def test_an_event_that_is_too_large_goes_without_its_body() -> None:
    body = payload(
        "a@1", "incident.commented", "user:bob", NOW, "0", {"number": 1}, {"text": "x" * LARGEST_BODY}
    )
    assert len(body) < 1_000
    assert json.loads(body)["event"] is None


@pytest.mark.parametrize(
    ("status", "means"),
    [
        (200, "taken"), (204, "taken"), (302, "later"), (400, "refused"), (401, "later"), (404, "later"), (410, "gone"),
        (413, "refused"), (422, "refused"), (429, "later"), (500, "later"), (503, "later"),
    ],
)  # fmt: skip
def test_only_answers_about_the_event_end_its_delivery(status: int, means: str) -> None:
    assert outcome(status) == means


def test_pauses_double_and_have_an_end() -> None:
    assert [pause(n).total_seconds() for n in (1, 2, 3)] == [5, 10, 20]
    assert pause(10_000) == LONGEST_PAUSE


def test_a_receiver_may_ask_for_a_longer_pause_but_not_for_one_without_end() -> None:
    assert pause(1, 60).total_seconds() == 60
    assert pause(1, 10**9) == timedelta(hours=1)


@pytest.mark.parametrize(
    ("told", "seconds"), [("30", 30.0), ("", None), ("Wed, 21 Oct 2026", None), ("9" * 30, None)]
)
def test_retry_after_is_read_where_it_gives_seconds(told: str, seconds: float | None) -> None:
    assert retry_after_of({"retry-after": told}) == seconds


def test_one_failure_does_not_stop_the_others() -> None:
    health = after(Health(), False, 1, NOW)
    assert (health.probing, health.retry_at, health.failing_since) == (False, None, NOW)


def test_an_endpoint_that_fails_and_fails_is_left_alone_for_a_while() -> None:
    health = after(Health(), False, PATIENCE, NOW)
    assert health.probing
    assert health.retry_at == NOW + timedelta(seconds=5)


def test_the_longer_it_fails_the_longer_it_is_left_alone() -> None:
    failing = Health(10, NOW - timedelta(minutes=2), NOW)
    assert after(failing, False, 1, NOW).retry_at == NOW + timedelta(minutes=2)
    assert (
        after(replace(failing, failing_since=NOW - timedelta(days=1)), False, 1, NOW).retry_at
        == NOW + LONGEST_PAUSE
    )


def test_one_answer_makes_an_endpoint_well() -> None:
    assert after(Health(50, NOW - timedelta(days=1), NOW), True, 3, NOW) == Health()


def test_a_round_without_any_try_changes_nothing() -> None:
    failing = Health(7, NOW, NOW)
    assert after(failing, False, 0, NOW) == failing


def test_an_endpoint_is_given_up_after_days_of_failing() -> None:
    assert exhausted(Health(9, NOW - DISABLE_AFTER), NOW)
    assert not exhausted(Health(9, NOW - DISABLE_AFTER + timedelta(seconds=1)), NOW)
    assert not exhausted(Health(), NOW)


def test_an_event_is_put_aside_only_where_the_endpoint_took_others_meanwhile() -> None:
    since = NOW - GIVE_UP
    assert given_up(since, NOW, NOW)
    assert not given_up(since, since - timedelta(hours=1), NOW)
    assert not given_up(since, None, NOW)
    assert not given_up(NOW, NOW, NOW)
