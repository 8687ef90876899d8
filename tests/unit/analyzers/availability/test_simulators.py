"""Months of outages and uptimes: windows cut directly equal the rows as the offline reader reduces them."""

from datetime import timedelta
from typing import Any

import numpy as np
import pytest

from analyzers.builtin.availability import ANALYZER as AVAILABILITY
from analyzers.builtin.tor_availability import ANALYZER as TOR_AVAILABILITY
from analyzers.contract import Paths, Sums, Window
from analyzers.simulators import outages, uptimes
from ingest.telemetry.windows import offline
from tests.unit.analyzers.simulators.test_scenarios import decoded

pytestmark = pytest.mark.simulated


def rows_of(sums: Sums) -> list[tuple[Any, ...]]:
    columns: list[list[Any]] = []
    for _, key in sorted(sums.keys.items()):
        assert not isinstance(key, Paths)
        columns.append(key.tolist() if isinstance(key, np.ndarray) else list(key))
    return list(zip(*columns, strict=True))


def agree(window: Window, tables: dict[str, Any], chosen: Any) -> None:
    read = offline.reduce(chosen, tables, window.start, window.end)
    for name, made in window.sums.items():
        assert rows_of(made) == rows_of(read[name])


def test_outages_cut_directly_are_those_of_the_rows() -> None:
    record = outages.draw(outages.Class(devices=40, monthly=2, upgraded=0.5, twice=0.3, batch=3), 5)
    tables = {
        "outage": decoded("outage", outages.outage_rows(record)),
        "topology": decoded("topology", outages.topology_rows(record)),
    }
    agree(outages.window_of(record), tables, TOR_AVAILABILITY.inputs[0])


def test_uptimes_cut_directly_are_those_of_the_rows() -> None:
    life = uptimes.draw(uptimes.Month(units=40, daily=0.5, days=5), 6)
    tables = {"uptime": decoded("uptime", uptimes.uptime_rows(uptimes.table_of(life)))}
    chosen = next(one for one in AVAILABILITY.inputs if one.name == "uptime")
    agree(uptimes.window_of(life), tables, chosen)


def test_the_bad_batch_goes_out_as_often_as_told() -> None:
    record = outages.draw(outages.Class(batch=100, batch_monthly=4.0, devices=200, monthly=0.0), 7)
    mine = [one for one in record.outages if one.device in record.bad]
    assert len(mine) == len(record.outages) == pytest.approx(400, rel=0.15)


def test_outages_last_as_long_as_those_of_the_talk() -> None:
    record = outages.draw(outages.Class(devices=3000, monthly=1.0), 8)
    whole = [one for one in record.outages if one.end is not None]
    means = {
        cause: np.mean([one.end - one.start for one in whole if one.end is not None and one.cause == cause])
        for cause in ("soft", "hard")
    }
    assert means == {"soft": pytest.approx(20, rel=0.05), "hard": pytest.approx(120, rel=0.1)}


def test_units_fail_farther_away_by_the_planted_share() -> None:
    life = uptimes.draw(uptimes.Month(units=3000, farther=1.0, shift=0.0, far=0.5, daily=0.1), 9)
    far = life.far_first[life.unit]
    rate = far.sum() / life.far_first.sum() / ((~far).sum() / (~life.far_first).sum())
    assert rate == pytest.approx(2.0, rel=0.05)


def test_a_unit_is_never_down_twice_at_once() -> None:
    life = uptimes.draw(uptimes.Month(units=50, daily=3.0, clumped=0.3), 10)
    same = life.unit[1:] == life.unit[:-1]
    assert np.all(life.start[1:][same] > life.end[:-1][same])


def test_a_month_has_its_days() -> None:
    window = uptimes.window_of(uptimes.draw(uptimes.Month(units=5), 1))
    assert window.length == timedelta(days=30)
