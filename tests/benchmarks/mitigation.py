"""GPU-hours lost by following the recommended option, beside always the same one and the best of hindsight.

python -m tests.benchmarks.mitigation [--trials N] [--first SEED]

Jobs and their futures are those of `tests.worlds.mitigation`, which shares no code with the rule. The figure is the
excess over the option with the least mean loss, as a share of that loss, summed over jobs: 0 is right. The interval is
over trials of 60 jobs with 300 futures each.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from incidents.domain.remediation.mitigation import Inputs, options
from tests.benchmarks.script import script
from tests.worlds.mitigation import CASES, OPTIONS, Job, job, losses

FIRST_SEED, TRIALS = 7_000, 10
JOBS, FUTURES = 60, 300


def inputs_of(one: Job) -> Inputs:
    return Inputs(
        gpus=one.gpus,
        probability=one.guilty,
        slowdown=one.slow,
        repair_hours=one.repair,
        crash_hours=one.crash,
        checkpoint_minutes=60 * one.every,
        since_checkpoint_minutes=60 * one.since,
        detect_minutes=60 * one.notice,
        restart_minutes=60 * one.restart,
        prepare_minutes=60 * one.prepare,
        migrate_seconds=3600 * one.migrate,
        standby_gpus=one.standby,
    )


def regrets(case: str, jobs: int, futures: int, rng: np.random.Generator) -> dict[str, float]:
    """Excess over the least mean loss as a share of it; an option that a job cannot take is `wait` for that job."""
    lost = dict.fromkeys(("recommended", *OPTIONS), 0.0)
    least = 0.0
    for _ in range(jobs):
        one = job(rng)
        means = {name: float(hours.mean()) for name, hours in losses(one, case, rng, futures).items()}
        best = options(inputs_of(one))[0].name
        for name in lost:
            lost[name] += means.get(best if name == "recommended" else name, means["wait"])
        least += min(means.values())
    return {name: hours / least - 1 for name, hours in lost.items()}


def rows(trials: int, first: int) -> Iterator[dict[str, Any]]:
    for case in CASES:
        found = [
            regrets(case, JOBS, FUTURES, np.random.default_rng([seed, 1]))
            for seed in range(first, first + trials)
        ]
        for name in ("recommended", *OPTIONS):
            values = np.array([one[name] for one in found])
            half = 1.96 * values.std(ddof=1) / np.sqrt(trials) if trials > 1 else 0.0
            yield {
                "name": f"mitigation: {case}, {name if name == 'recommended' else f'always {name}'}",
                "value": round(float(values.mean()), 3),
                "bar": None,
                "interval": [values.mean() - half, values.mean() + half],
                "note": f"±{half:.3f} over {trials} times {JOBS} jobs",
            }


def main(trials: int = TRIALS, first: int = FIRST_SEED) -> list[dict[str, Any]]:
    return list(rows(trials, first))


if __name__ == "__main__":
    script(rows, TRIALS, FIRST_SEED)
