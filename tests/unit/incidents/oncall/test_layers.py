"""Layers as they are configured: what is read, and what is refused where."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from incidents.domain.oncall.layers import read_layers
from incidents.domain.oncall.rotations import TimesOfWeek
from incidents.domain.values import InvalidValueError, read_zone
from tests.unit.incidents.oncall.cases import BERLIN

LAYER: dict[str, Any] = {"name": "primary", "people": ["alice"], "start": "2026-03-02T09:00", "turn": "1w"}
TIMES = [{"days": ["sat", "sun"], "from": "08:00", "to": "20:30"}]


def test_a_layer_is_read_as_it_is_written() -> None:
    [layer] = read_layers([{**LAYER, "times": TIMES, "time_zone": "UTC", "end": "2027-01-01T00:00"}], BERLIN)
    assert layer.times == (TimesOfWeek(frozenset({5, 6}), timedelta(hours=8), timedelta(hours=20.5)),)
    assert (layer.turn, layer.zone.key, str(layer.end)) == (timedelta(weeks=1), "UTC", "2027-01-01 00:00:00")


@pytest.mark.parametrize(("turn", "long"), [("12h", 0.5), ("3d", 3), ("2w", 14)])
def test_turns_are_hours_days_or_weeks(turn: str, long: float) -> None:
    assert read_layers([{**LAYER, "turn": turn}], BERLIN)[0].turn == timedelta(days=long)


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"people": []}, "layers[0].people"),
        ({"people": ["alice"] * 101}, "layers[0].people"),
        ({"people": ["alice", 7]}, "layers[0].people[1]"),
        ({"people": ["a\0b"]}, "layers[0].people[0]"),
        ({"start": "2026-03-02T09:00Z"}, "layers[0].start"),
        ({"start": "0001-01-01T00:00"}, "layers[0].start"),
        ({"start": "2026-02-30T09:00"}, "layers[0].start"),
        ({"start": 20260302}, "layers[0].start"),
        ({"end": "2026-03-02T09:00"}, "layers[0].end"),
        ({"turn": "0h"}, "layers[0].turn"),
        ({"turn": "9999w"}, "layers[0].turn"),
        ({"turn": "30m"}, "layers[0].turn"),
        ({"turn": "١w"}, "layers[0].turn"),
        ({"times": [{"days": [], "from": "08:00", "to": "20:00"}]}, "layers[0].times[0].days"),
        ({"times": [{"days": ["mon"], "from": "24:00", "to": "20:00"}]}, "layers[0].times[0].from"),
        ({"times": [{"days": ["mon"], "to": "20:00"}]}, "layers[0].times[0].from"),
        ({"times": {}}, "layers[0].times"),
        ({"holidays": []}, "layers[0].holidays"),
        ({"time_zone": "Europe"}, "layers[0].time_zone"),
        ({"time_zone": "../etc/passwd"}, "layers[0].time_zone"),
        ({"colour": "red"}, "layers[0].colour"),
    ],
    ids=str,
)
def test_what_is_wrong_is_named(changed: dict[str, Any], field: str) -> None:
    with pytest.raises(InvalidValueError) as refused:
        read_layers([{**LAYER, **changed}], BERLIN)
    assert refused.value.field == field


@pytest.mark.parametrize("layers", [None, [], {}, "layers", [LAYER] * 11, [LAYER, LAYER], [None]], ids=repr)
def test_layers_are_a_list_of_layers_that_differ_in_name(layers: Any) -> None:
    with pytest.raises(InvalidValueError, match="layers"):
        read_layers(layers, BERLIN)


@pytest.mark.parametrize("zone", ["Mars/Olympus", "", "\0", 7, "Europe/\nBerlin"], ids=repr)
def test_a_time_zone_is_one_that_is_known(zone: Any) -> None:
    with pytest.raises(InvalidValueError, match="time_zone"):
        read_zone("time_zone", zone)
