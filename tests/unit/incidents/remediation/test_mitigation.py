"""Expected GPU-hours against enumeration of the same story, minute by minute."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from incidents.domain.remediation.mitigation import (
    Inputs,
    Option,
    Traffic,
    exposed_seconds,
    options,
    saved_share,
)

SLOW = Inputs(
    gpus=512,
    probability=0.8,
    slowdown=0.3,
    repair_hours=5.3,
    crash_hours=9.0,
    checkpoint_minutes=60,
    since_checkpoint_minutes=25,
    detect_minutes=10,
    restart_minutes=15,
    prepare_minutes=8,
    migrate_seconds=20,
    standby_gpus=8,
)
HUNG = replace(SLOW, slowdown=1.0)
STEP = 0.002  # hours


def cost(name: str, given: Inputs) -> float | None:
    (found,) = [one for one in options(given) if one.name == name]
    return found.gpu_hours


def story(given: Inputs, horizon: float, end: float) -> float:
    """Hours lost if the guilty component may end the job within `horizon`, else `end` more: the job is walked through
    step by step, with its checkpoints, for every step in which it may crash."""
    lost, at_stake, to_checkpoint, expected, alive = 0.0, given.since_checkpoint_minutes / 60, 0.0, 0.0, 1.0
    to_checkpoint = (given.checkpoint_minutes - given.since_checkpoint_minutes) / 60
    for _ in range(round(horizon / STEP)):
        crash = alive * (1 - math.exp(-STEP / given.crash_hours))
        expected += crash * (lost + at_stake + (given.detect_minutes + given.restart_minutes) / 60)
        alive -= crash
        lost += given.slowdown * STEP
        at_stake += (1 - given.slowdown) * STEP
        to_checkpoint -= STEP
        if to_checkpoint <= 1e-9:
            at_stake, to_checkpoint = 0.0, given.checkpoint_minutes / 60
    return expected + alive * (lost + end)


@pytest.mark.parametrize(
    "given", [SLOW, replace(SLOW, crash_hours=0.7, slowdown=0.0), replace(SLOW, probability=1.0)]
)
def test_options_cost_what_the_story_told_step_by_step_costs(given: Inputs) -> None:
    p, restart, move = given.probability, given.restart_minutes / 60, given.migrate_seconds / 3600
    slow = given.slowdown * given.repair_hours
    guilty = story(given, given.repair_hours, 0.0)
    assert cost("wait", given) == pytest.approx(512 * (p * guilty + (1 - p) * slow), rel=0.01)
    guilty = story(given, 35 / 60, restart)
    assert cost("restart_at_checkpoint", given) == pytest.approx(
        512 * (p * guilty + (1 - p) * (slow + restart)), rel=0.01
    )
    guilty = story(given, 8 / 60, move)
    standby = 8 * (8 / 60 + move)
    assert cost("migrate", given) == pytest.approx(
        512 * (p * guilty + (1 - p) * (slow + move)) + standby, rel=0.01
    )
    assert cost("restart", given) == pytest.approx(512 * (25 / 60 + restart + (1 - p) * slow))


def test_a_fault_that_never_ends_the_job_costs_its_slow_down() -> None:
    assert cost("wait", replace(SLOW, crash_hours=0)) == pytest.approx(512 * 0.3 * 5.3)


def test_a_job_that_hangs_is_restarted() -> None:
    first, second, *rest = options(HUNG)
    assert [first.name, second.name] == ["restart", "wait"]
    assert first.gpu_hours == pytest.approx(512 * (40 / 60 + 0.2 * 25 / 60))
    assert second.gpu_hours == pytest.approx(512 * (5.3 + 40 / 60))
    assert {(one.name, one.gpu_hours) for one in rest} == {("restart_at_checkpoint", None), ("migrate", None)}


def test_more_of_what_hurts_never_makes_waiting_better() -> None:
    def regret(given: Inputs) -> float:
        wait, migrate = cost("wait", given), cost("migrate", given)
        assert wait is not None
        assert migrate is not None
        return wait - migrate

    for field, values in {
        "probability": (0.1, 0.5, 1.0),
        "slowdown": (0.0, 0.2, 0.9),
        "repair_hours": (1.0, 6.0, 48.0),
        "gpus": (8, 512, 4096),
    }.items():
        gains = [regret(replace(SLOW, **{"probability": 1.0, field: value})) for value in values]
        assert gains == sorted(gains)


def test_a_migration_needs_a_framework_that_can() -> None:
    assert cost("migrate", replace(SLOW, migrate_seconds=0)) is None
    assert options(replace(SLOW, probability=1.0))[0].name == "migrate"
    assert options(replace(SLOW, probability=0.0, slowdown=0.0))[0] == Option("wait", 0.0)


def test_a_network_saves_only_what_is_exposed() -> None:
    traffic = Traffic(workers=64, gigabytes=1.4, iteration_seconds=2.0, overlap_seconds=0.1)
    assert exposed_seconds(traffic, 25) == pytest.approx(2 * 63 / 64 * 1.4 * 8 / 25 - 0.1)
    assert exposed_seconds(traffic, 400) == 0
    assert saved_share(traffic, 25, 400) == pytest.approx(exposed_seconds(traffic, 25) / 2)
    assert saved_share(traffic, 400, 25) == 0
