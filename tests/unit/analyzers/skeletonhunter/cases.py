"""Small windows for skeletonhunter: six hosts of two cards, two windows of five minutes."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import cache
from io import BytesIO
from typing import Any

from analyzers.builtin.skeletonhunter import ANALYZER
from analyzers.contract import Window
from analyzers.offline import choose_input, windows
from analyzers.runner import judge
from analyzers.simulators.training_network import SMALL, WINDOW, Shape, scenario, start_of
from analyzers.testing import Case
from ingest.telemetry.windows.offline import read_file

TINY = replace(SMALL, rails=2, windows=2)
Rows = Mapping[str, Sequence[Mapping[str, Any]]]


def tables_of(rows: Rows) -> dict[str, Any]:
    return {
        kind: read_file(kind, "-", BytesIO("".join(json.dumps(row) + "\n" for row in told).encode()))
        for kind, told in rows.items()
    }


def only_window(rows: Rows) -> Window:
    """All rows as one window."""
    tables = tables_of(rows)
    (found,) = windows(ANALYZER, choose_input(ANALYZER, tables), tables)
    return found


def last_window(rows: Rows, shape: Shape = TINY) -> Window:
    """The last window of a scenario's rows with its history, as `manage.py analyze --every 5m` cuts it."""
    tables = tables_of(rows)
    cut = windows(ANALYZER, choose_input(ANALYZER, tables), tables, timedelta(seconds=WINDOW))
    (found,) = (one for one in cut if one.start == start_of(shape.windows - 1))
    return found


@cache
def made(
    seed: int, kinds: tuple[str, ...], event: str = "", shape: Shape = TINY
) -> tuple[Window, dict[str, Any]]:
    rows, truth = scenario("test", seed, kinds, event, shape)
    return last_window(rows, shape), truth


def verdict(seed: int, *kinds: str, event: str = "", shape: Shape = TINY, **params: Any) -> dict[str, Any]:
    return judge(ANALYZER, made(seed, kinds, event, shape)[0], params)


def case(seed: int, faulty: bool) -> Case:
    window, truth = made(seed, ("rnic_firmware",) if faulty else ())
    return Case(window, tuple(one["component"] for one in truth["faults"]))
