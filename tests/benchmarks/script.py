"""A benchmark as a command of its own: `python -m tests.benchmarks.NAME [--trials N] [--first SEED] [--calibrate]`."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterable
from typing import Any


def script(
    figures: Callable[[int, int], Iterable[dict[str, Any]]],
    trials: int,
    first: int,
    calibration: Callable[[int], Iterable[object]] | None = None,
) -> None:
    """Print each figure when it is there; with `--calibrate` what scores are calibrated by, instead."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--trials", type=int, default=trials)
    parser.add_argument("--first", type=int, default=first)
    if calibration is not None:
        parser.add_argument("--calibrate", action="store_true")
    arguments = parser.parse_args()
    if calibration is not None and arguments.calibrate:
        for pair in calibration(arguments.trials):
            print(pair)
        return
    from tests.benchmarks.__main__ import line

    for row in figures(arguments.trials, arguments.first):
        print(line(row), flush=True)
