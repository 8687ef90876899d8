"""Rows of a window: intervals that overlap it, what had come when it was read, and what came late."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from ingest.queries import Position, late_rows, read_window, watermark
from ingest.telemetry.windows.offline import reduce
from ingest.telemetry.windows.reductions import STILL_GOING, Count, Input, Reduction
from tests.integration.ingest.telemetry.test_readers import END, OUTAGES, START, store, table

pytestmark = pytest.mark.usefixtures("log_database")


def out(minute: int, end: int | None = None) -> dict[str, Any]:
    after = None if end is None else START + timedelta(minutes=end)
    return {"start": START + timedelta(minutes=minute), "device": "tor/a", "end": after, "cause": "soft"}


def ends_of(rows: list[dict[str, Any]]) -> list[int]:
    """Ends of the outages that overlap the window, in minutes after its start."""
    ends = reduce(OUTAGES, {"outage": table("outage", rows, "r")}, START, END)["outages"].keys["end"]
    assert isinstance(ends, np.ndarray)
    return [
        int(end - START.timestamp() * 1e6) // 60_000_000 if end < STILL_GOING else -1 for end in ends.tolist()
    ]


def test_an_outage_belongs_to_every_window_that_it_overlaps() -> None:
    rows = [out(-90, -1), out(-80, 0), out(-70, 1), out(59, 70), out(60, 70)]
    assert ends_of(rows) == [1, 70]


def test_an_outage_that_was_told_of_again_ends_as_was_said_last() -> None:
    assert ends_of([out(-90), out(5), out(5, 9)]) == [-1, 9]
    assert ends_of([out(-90), out(-90, -30)]) == []


FAILURES = Input("failures", (Reduction("n", "unit_failure", (), {"n": Count()}),))


def fail(region: str, minute: int) -> None:
    store("unit_failure", [{"time": START + timedelta(minutes=minute), "unit": "vm/1"}], region)


def test_a_window_read_at_a_position_leaves_out_what_came_later() -> None:
    fail("r", 1)
    then = watermark()
    fail("r", 2)
    assert read_window(FAILURES, "r", START, END, then)["n"].values["n"].tolist() == [1]
    assert read_window(FAILURES, "r", START, END, watermark())["n"].values["n"].tolist() == [2]
    assert read_window(FAILURES, "r", START, END, Position.START)["n"].rows == 0


def test_late_rows_of_a_window_are_listed_by_receipt() -> None:
    fail("r", 1)
    then = watermark()
    fail("r", 2)
    fail("r", 200)  # after the window
    fail("elsewhere", 2)
    (late,) = late_rows(["unit_failure"], "r", START, END, then)
    assert (late.rows, late.first) == (1, START + timedelta(minutes=2))


def test_states_that_came_late_are_listed_when_they_began_before_the_window() -> None:
    then = watermark()
    for hours in (-1, 1):
        row = {
            "time": START + timedelta(hours=hours),
            "unit": "vm/1",
            "components": ["host/1"],
            "active": True,
        }
        store("placement", [row], "r")
    assert [late.rows for late in late_rows(["placement"], "r", START, END, then)] == [1]
