"""Effects of time alone, and when the silence of senders means something. A clock that the tests move."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from incidents import timers
from incidents.timers import BREAK, PATIENCE, ReachabilityGuard

NOON = datetime(2026, 1, 2, 12, tzinfo=UTC)


class Clock:
    seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def look_for(listening: ReachabilityGuard, clock: Clock, seconds: float, every: float = 5.0) -> None:
    """Look again and again; at a database that answers."""
    end = clock.seconds + seconds
    while clock.seconds < end:
        clock.seconds += every
        listening.looked()


def test_after_a_start_silence_means_nothing_until_senders_had_the_time_to_come_back() -> None:
    listening = ReachabilityGuard(clock := Clock())
    look_for(listening, clock, PATIENCE - 5)
    assert not listening.long_enough
    look_for(listening, clock, 5)
    assert listening.long_enough


def test_after_the_database_was_away_senders_have_that_time_again() -> None:
    listening = ReachabilityGuard(clock := Clock())
    look_for(listening, clock, 2 * PATIENCE)
    clock.seconds += BREAK + 1
    listening.looked()
    assert not listening.long_enough


def test_a_look_that_fails_leaves_the_others_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    done: list[str] = []

    def sweep(name: str, *_: object) -> int | None:
        done.append(name)
        return None if name == "a" else 1

    monkeypatch.setattr(timers, "sweep_once", sweep)
    monkeypatch.setattr(timers, "OF_INCIDENTS", dict.fromkeys("ab"))
    assert timers.look(ReachabilityGuard(Clock()), NOON) == 1 + len(timers.OF_SILENCE)
    assert done == ["a", "b", *timers.OF_SILENCE]
