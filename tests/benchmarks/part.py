"""One benchmark in this process: `python -m tests.benchmarks.part NAME FILE [SHARE]` writes its figures as JSON.

`SHARE` of the usual number of trials is taken by those that count trials; the intervals grow by its square root, the
bars stay.
"""

from __future__ import annotations

import importlib
import inspect
import json
import math
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

COUNTED = ("trials", "days", "fleets", "traces", "windows")
"""Parameters that say how much is tried; `share` is one already."""
FEWEST = 4


def fewer(main: Callable[..., Any], share: float) -> dict[str, int | float]:
    """Arguments with which `main` tries this share of what it usually does; not more."""
    if share >= 1:
        return {}
    usual = {name: one.default for name, one in inspect.signature(main).parameters.items()}
    asked: dict[str, int | float] = {
        name: min(usual[name], max(FEWEST, math.ceil(usual[name] * share)))
        for name in COUNTED
        if name in usual
    }
    if "share" in usual:
        asked["share"] = usual["share"] * share
    return asked


if __name__ == "__main__":
    name, out, *rest = sys.argv[1:]
    entry = importlib.import_module(f"tests.benchmarks.{name}").main
    rows = entry(**fewer(entry, float(rest[0]) if rest else 1.0))
    Path(out).write_text(json.dumps(rows, default=str))
